-- A small shop: tables, indexes, rows, a transaction, reports.
-- Runs on a new or an old database: it starts over each time.
--
--     cargo run --release -- orders.db < examples/orders.sql

DROP TABLE IF EXISTS order_line;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS product;
DROP TABLE IF EXISTS customer;

CREATE TABLE customer (
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    city  TEXT
);

CREATE TABLE product (
    id    INTEGER PRIMARY KEY,
    sku   TEXT NOT NULL UNIQUE,
    name  TEXT NOT NULL,
    price REAL NOT NULL,
    stock INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE orders (
    id          INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL,
    placed_on   TEXT NOT NULL,
    status      TEXT NOT NULL DEFAULT 'open'
);

CREATE TABLE order_line (
    order_id   INTEGER NOT NULL,
    product_id INTEGER NOT NULL,
    quantity   INTEGER NOT NULL DEFAULT 1,
    price      REAL NOT NULL,
    PRIMARY KEY (order_id, product_id)
);

CREATE INDEX orders_by_customer ON orders (customer_id, placed_on);
CREATE INDEX lines_by_product ON order_line (product_id);

INSERT INTO customer (name, email, city) VALUES
    ('Amélie Roux', 'amelie@example.org', 'Lyon'),
    ('Bo Lindgren', 'bo@example.org', 'Umeå'),
    ('Chidi Okafor', 'chidi@example.org', 'Enugu'),
    ('Dana Kovač', 'dana@example.org', 'Split'),
    ('Emre Aydın', 'emre@example.org', NULL);

INSERT INTO product (sku, name, price, stock) VALUES
    ('LMP-01', 'Desk lamp', 39.9, 25),
    ('CHR-07', 'Chair', 119.0, 8),
    ('DSK-02', 'Standing desk', 449.0, 3),
    ('PEN-99', 'Fountain pen', 24.5, 120),
    ('INK-05', 'Ink, blue', 6.25, 300);

INSERT INTO orders (customer_id, placed_on, status) VALUES
    (1, '2026-01-04', 'shipped'),
    (2, '2026-01-09', 'shipped'),
    (1, '2026-02-17', 'shipped'),
    (3, '2026-02-20', 'open'),
    (4, '2026-03-02', 'cancelled');

-- Every product of the first two orders at the price it has now, then the rest.
INSERT INTO order_line (order_id, product_id, quantity, price)
    SELECT o.id, p.id, 1, p.price
    FROM orders AS o JOIN product AS p ON p.price < 100
    WHERE o.id <= 2;

INSERT INTO order_line VALUES
    (3, 2, 2, 119.0),
    (3, 3, 1, 449.0),
    (4, 4, 10, 22.0),
    (4, 5, 30, 5.5),
    (5, 3, 1, 449.0);

-- A sale is all or nothing: the order, its line and the stock change together.
BEGIN;
INSERT INTO orders (customer_id, placed_on) VALUES (2, '2026-03-05');
INSERT INTO order_line (order_id, product_id, quantity, price)
    SELECT max(o.id), p.id, 4, p.price FROM orders AS o JOIN product AS p ON p.sku = 'CHR-07' GROUP BY p.id, p.price;
UPDATE product SET stock = stock - 4 WHERE sku = 'CHR-07';
COMMIT;

-- And this one is thought better of.
BEGIN;
SAVEPOINT discount;
UPDATE product SET price = price * 0.5;
ROLLBACK TO discount;
DELETE FROM orders WHERE status = 'cancelled';
ROLLBACK;

SELECT p.sku, p.name, p.price, p.stock FROM product AS p ORDER BY p.sku;

SELECT o.id AS "order", c.name AS customer, o.placed_on AS placed, o.status,
       count(*) AS lines, round(sum(l.quantity * l.price), 2) AS total
FROM orders AS o
JOIN customer AS c ON c.id = o.customer_id
JOIN order_line AS l ON l.order_id = o.id
WHERE o.status <> 'cancelled'
GROUP BY o.id, c.name, o.placed_on, o.status
ORDER BY total DESC;

SELECT c.name AS customer, coalesce(c.city, 'unknown') AS city, count(o.id) AS orders, max(o.placed_on) AS last_order
FROM customer AS c
LEFT JOIN orders AS o ON o.customer_id = c.id
GROUP BY c.id, c.name, c.city
ORDER BY orders DESC, customer;

SELECT p.name AS product, sum(l.quantity) AS sold, round(sum(l.quantity * l.price), 2) AS revenue
FROM order_line AS l
JOIN product AS p ON p.id = l.product_id
GROUP BY p.id, p.name
HAVING sum(l.quantity) > 3
ORDER BY revenue DESC
LIMIT 3;

EXPLAIN QUERY PLAN
SELECT o.id FROM orders AS o WHERE o.customer_id = 2 AND o.placed_on >= '2026-02-01';
