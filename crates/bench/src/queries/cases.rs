//! The queries. What they are asked of is in `data.rs`: four years of orders, from 2020 on.

/// A query that both sides answer.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// What it does, in a few words.
    pub what: &'static str,
    pub sql: &'static str,
    /// Whether it says in which order its rows come.
    pub ordered: bool,
}

/// A query whose rows may come in any order.
const fn rows(name: &'static str, what: &'static str, sql: &'static str) -> Case {
    Case {
        name,
        what,
        sql,
        ordered: false,
    }
}

/// A query that says the order of its rows.
const fn sorted(name: &'static str, what: &'static str, sql: &'static str) -> Case {
    Case {
        name,
        what,
        sql,
        ordered: true,
    }
}

/// Whose key a lookup is given.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    Customer,
    Product,
    Order,
}

/// Lookups, a thousand random keys `?1` each time.
pub const LOOKUPS: [(&str, &str, Key, &str); 13] = [
    (
        "lookup_order",
        "an order, its customer and its shop, by key",
        Key::Order,
        "SELECT o.placed, o.total, c.name, s.name FROM orders o \
         JOIN customers c ON c.id = o.customer_id JOIN shops s ON s.id = o.shop_id WHERE o.id = ?1",
    ),
    (
        "lookup_lines",
        "the lines of an order with their products",
        Key::Order,
        "SELECT l.position, l.quantity, p.name FROM lines l JOIN products p ON p.id = l.product_id \
         WHERE l.order_id = ?1",
    ),
    (
        "lookup_orders",
        "the last five orders of a customer",
        Key::Customer,
        "SELECT id, placed, total FROM orders WHERE customer_id = ?1 ORDER BY id DESC LIMIT 5",
    ),
    (
        "lookup_sum",
        "sums over the lines of a product",
        Key::Product,
        "SELECT count(*), sum(quantity), max(due) FROM lines WHERE product_id = ?1",
    ),
    (
        "lookup_stock",
        "the shops that have a product",
        Key::Product,
        "SELECT s.name, k.quantity FROM stock k JOIN shops s ON s.id = k.shop_id \
         WHERE k.product_id = ?1 AND k.quantity > 10",
    ),
    (
        "lookup_exists",
        "a customer, and whether there is an open order",
        Key::Customer,
        "SELECT name, EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id \
         AND o.status = 'open') FROM customers c WHERE id = ?1",
    ),
    (
        "lookup_values",
        "three customers that VALUES names",
        Key::Customer,
        "WITH few (id) AS (VALUES (?1), (?1 + 1), (?1 + 2)) \
         SELECT c.name FROM few JOIN customers c ON c.id = few.id",
    ),
    (
        "lookup_rows",
        "two lines by row values",
        Key::Order,
        "SELECT order_id, quantity FROM lines \
         WHERE (order_id, position) IN (VALUES (?1, 1), (?1 + 1, 2))",
    ),
    (
        "lookup_group",
        "a customer and the count of all orders of each",
        Key::Customer,
        "SELECT c.name, o.count FROM customers c JOIN (SELECT customer_id, count(*) AS count \
         FROM orders GROUP BY customer_id) o ON o.customer_id = c.id WHERE c.id = ?1",
    ),
    (
        "lookup_in",
        "an order, if its customer sent another one",
        Key::Order,
        "SELECT total FROM orders WHERE id = ?1 \
         AND customer_id IN (SELECT referred_by FROM customers)",
    ),
    (
        "lookup_not_in",
        "an order, if its customer sent no other one",
        Key::Order,
        "SELECT total FROM orders WHERE id = ?1 \
         AND customer_id NOT IN (SELECT referred_by FROM customers WHERE referred_by IS NOT NULL)",
    ),
    (
        "lookup_in_sum",
        "the lines of an order, and how many are of what is kept",
        Key::Order,
        "SELECT count(*), sum(product_id IN (SELECT product_id FROM stock)) \
         FROM lines WHERE order_id = ?1",
    ),
    (
        "lookup_senders",
        "who sent a customer, and who sent those",
        Key::Customer,
        "WITH RECURSIVE senders (id) AS (SELECT ?1 UNION ALL \
         SELECT c.referred_by FROM senders s JOIN customers c ON c.id = s.id \
         WHERE c.referred_by IS NOT NULL) \
         SELECT count(*), max(name) FROM customers WHERE id IN (SELECT id FROM senders)",
    ),
];

/// Queries over much of the data.
pub const CASES: [Case; 77] = [
    rows(
        "join_two",
        "join of two, a fiftieth of the rows",
        "SELECT c.name, o.total FROM orders o JOIN customers c ON c.id = o.customer_id \
         WHERE o.total > 1200000",
    ),
    rows(
        "join_two_all",
        "join of two, all rows",
        "SELECT sum(l.quantity * p.weight) FROM lines l JOIN products p ON p.id = l.product_id",
    ),
    rows(
        "join_three",
        "join of three, grouped",
        "SELECT o.channel, count(*), sum(l.quantity * l.price) FROM customers c \
         JOIN orders o ON o.customer_id = c.id JOIN lines l ON l.order_id = o.id \
         WHERE c.level = 'gold' AND o.placed >= '2022-03-01' GROUP BY o.channel",
    ),
    sorted(
        "join_four_top",
        "join of four, the best ten",
        "SELECT p.name, s.name, sum(l.quantity) AS sold, p.id FROM lines l \
         JOIN products p ON p.id = l.product_id JOIN suppliers s ON s.id = p.supplier_id \
         JOIN orders o ON o.id = l.order_id WHERE o.status = 'returned' \
         GROUP BY p.id, s.id ORDER BY sold DESC, p.id LIMIT 10",
    ),
    rows(
        "join_five",
        "join of five, few rows of two of them",
        "SELECT h.name, sum(l.quantity * l.price * (100 - l.discount)) / 100 FROM regions r \
         JOIN shops h ON h.region_id = r.id JOIN orders o ON o.shop_id = h.id \
         JOIN lines l ON l.order_id = o.id JOIN products p ON p.id = l.product_id \
         WHERE r.name = 'Dunes' AND p.category = 'tea' GROUP BY h.id",
    ),
    sorted(
        "join_seven",
        "join of seven, regions of customers and suppliers",
        "SELECT strftime('%Y', o.placed) AS year, sum(l.quantity * l.price) FROM regions a, \
         customers c, orders o, lines l, products p, suppliers s, regions b \
         WHERE a.id = c.region_id AND c.id = o.customer_id AND o.id = l.order_id \
         AND p.id = l.product_id AND s.id = p.supplier_id AND b.id = s.region_id \
         AND a.name = 'Coast' AND b.land = 'South' GROUP BY year ORDER BY year",
    ),
    sorted(
        "star",
        "a star: orders with three tables around",
        "SELECT r.land, h.region_id, c.level, count(*), sum(o.total) FROM orders o \
         JOIN customers c ON c.id = o.customer_id JOIN shops h ON h.id = o.shop_id \
         JOIN regions r ON r.id = c.region_id WHERE o.channel <> 'phone' \
         GROUP BY r.land, h.region_id, c.level ORDER BY r.land, h.region_id, c.level",
    ),
    rows(
        "two_columns",
        "join by a key of two columns",
        "SELECT count(*), sum(k.quantity) FROM orders o JOIN lines l ON l.order_id = o.id \
         JOIN stock k ON k.shop_id = o.shop_id AND k.product_id = l.product_id \
         WHERE k.quantity < l.quantity",
    ),
    rows(
        "either_of_two",
        "a disjunction over two tables",
        "SELECT sum(l.quantity * l.price), count(*) FROM lines l \
         JOIN products p ON p.id = l.product_id \
         WHERE (p.category = 'lamps' AND p.price < 3000 AND l.quantity BETWEEN 1 AND 5) \
         OR (p.category = 'music' AND p.price > 18000 AND l.quantity BETWEEN 10 AND 15)",
    ),
    rows(
        "by_range",
        "join by a range of an index",
        "WITH weeks (name, since, until) AS (VALUES ('spring', '2021-03-20', '2021-03-28'), \
         ('summer', '2022-06-20', '2022-06-28'), ('winter', '2022-12-15', '2022-12-23')) \
         SELECT w.name, count(*), sum(o.total) FROM weeks w \
         JOIN orders o ON o.placed BETWEEN w.since AND w.until GROUP BY w.name",
    ),
    rows(
        "by_inequality",
        "join of a small table with itself by <",
        "SELECT count(*) FROM suppliers a JOIN suppliers b ON a.rating < b.rating",
    ),
    rows(
        "by_inequality_of_two",
        "join of small tables by an inequality of sums",
        "SELECT count(*), max(a.area + b.rating) FROM shops a JOIN suppliers b \
         ON a.area * 2 > b.rating + 300 AND a.region_id <> b.region_id",
    ),
    rows(
        "pairs_by_index",
        "pairs of orders of one customer",
        "SELECT count(*) FROM orders a JOIN orders b \
         ON b.customer_id = a.customer_id AND b.id > a.id",
    ),
    rows(
        "pairs_of_a_day",
        "pairs of orders of one customer, with what is no key",
        "SELECT count(*), sum(b.total - a.total) FROM orders a JOIN orders b \
         ON b.customer_id = a.customer_id AND b.total > a.total AND b.channel = a.channel",
    ),
    rows(
        "referrers",
        "customers with those who sent them, twice",
        "SELECT count(*), count(DISTINCT b.id), count(DISTINCT c.id) FROM customers a \
         JOIN customers b ON b.id = a.referred_by JOIN customers c ON c.id = b.referred_by \
         WHERE a.level = 'new'",
    ),
    rows(
        "outer",
        "LEFT JOIN with a condition on the right",
        "SELECT count(*), count(o.id), sum(o.total) FROM customers c \
         LEFT JOIN orders o ON o.customer_id = c.id AND o.status = 'open'",
    ),
    rows(
        "outer_missing",
        "LEFT JOIN, the rows without a partner",
        "SELECT c.id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id \
         WHERE o.id IS NULL",
    ),
    rows(
        "outer_counts",
        "how many customers have how many orders",
        "SELECT n, count(*) FROM (SELECT c.id, count(o.id) AS n FROM customers c \
         LEFT JOIN orders o ON o.customer_id = c.id AND o.note IS NULL GROUP BY c.id) GROUP BY n",
    ),
    rows(
        "full_outer",
        "FULL JOIN of two grouped queries",
        "SELECT count(*), sum(kept), sum(sold) FROM \
         (SELECT product_id AS a, sum(quantity) AS kept FROM stock GROUP BY product_id) \
         FULL JOIN (SELECT product_id AS b, sum(quantity) AS sold FROM lines \
         WHERE discount = 10 GROUP BY product_id) ON a = b",
    ),
    rows(
        "exists",
        "EXISTS by an index",
        "SELECT count(*) FROM customers c WHERE EXISTS \
         (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.status = 'returned')",
    ),
    rows(
        "exists_other",
        "EXISTS with an inequality beside the key",
        "SELECT count(*) FROM lines l WHERE l.discount = 3 AND EXISTS (SELECT 1 FROM lines m \
         WHERE m.order_id = l.order_id AND m.product_id <> l.product_id AND m.due > l.due)",
    ),
    rows(
        "not_exists",
        "NOT EXISTS by an index",
        "SELECT count(*) FROM products p WHERE NOT EXISTS \
         (SELECT 1 FROM lines l WHERE l.product_id = p.id AND l.discount > 8)",
    ),
    rows(
        "in_grouped",
        "IN a grouped query",
        "SELECT o.id, o.total FROM orders o WHERE o.id IN \
         (SELECT order_id FROM lines GROUP BY order_id HAVING sum(quantity) > 80)",
    ),
    rows(
        "not_in",
        "NOT IN a query",
        "SELECT count(*) FROM stock WHERE product_id NOT IN \
         (SELECT id FROM products WHERE category IN ('tea', 'paper') AND price < 10000)",
    ),
    rows(
        "in_value",
        "how many customers have ordered",
        "SELECT count(*), sum(id IN (SELECT customer_id FROM orders)) FROM customers",
    ),
    rows(
        "in_correlated",
        "IN a query that looks at the row around",
        "SELECT count(*) FROM orders o WHERE o.shop_id IN (SELECT k.shop_id FROM stock k \
         JOIN lines l ON l.product_id = k.product_id WHERE l.order_id = o.id) \
         AND o.placed > '2023-06-01'",
    ),
    rows(
        "exists_or",
        "EXISTS under OR",
        "SELECT count(*) FROM customers c WHERE c.level = 'gold' OR EXISTS \
         (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 800000)",
    ),
    rows(
        "exists_result",
        "EXISTS by an index as a result",
        "SELECT id, EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id) FROM customers c",
    ),
    rows(
        "scalar_by_key",
        "scalar subqueries by key",
        "SELECT o.id, (SELECT name FROM customers WHERE id = o.customer_id), \
         (SELECT name FROM shops WHERE id = o.shop_id) FROM orders o WHERE o.status = 'packed'",
    ),
    rows(
        "scalar_count",
        "count() for each row by a covering index",
        "SELECT sum(n * n) FROM (SELECT (SELECT count(*) FROM orders WHERE customer_id = c.id) \
         AS n FROM customers c)",
    ),
    rows(
        "scalar_sums",
        "max() and sum() for each row by an index",
        "SELECT p.id, (SELECT max(due) FROM lines WHERE product_id = p.id), \
         (SELECT sum(quantity) FROM lines WHERE product_id = p.id AND discount < 5) \
         FROM products p WHERE p.category IN ('tools', 'shoes')",
    ),
    rows(
        "greatest_of_each",
        "rows that hold the max() of their group",
        "SELECT count(*), sum(id) FROM orders o WHERE total = \
         (SELECT max(total) FROM orders i WHERE i.customer_id = o.customer_id)",
    ),
    rows(
        "below_average",
        "rows below half of the avg() of their group",
        "SELECT count(*), sum(l.price) FROM lines l JOIN products p ON p.id = l.product_id \
         WHERE p.category = 'garden' AND l.quantity < \
         (SELECT 0.5 * avg(quantity) FROM lines WHERE product_id = p.id)",
    ),
    rows(
        "common_twice",
        "a common table read twice",
        "WITH sales AS (SELECT o.shop_id AS shop, sum(o.total) AS sum FROM orders o \
         WHERE o.placed BETWEEN '2021-01-01' AND '2021-12-31' GROUP BY o.shop_id) \
         SELECT h.name, s.sum FROM shops h JOIN sales s ON s.shop = h.id \
         WHERE s.sum > (SELECT avg(sum) FROM sales)",
    ),
    rows(
        "recursive_count",
        "a recursive table of 100,000 numbers",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
         SELECT sum(i * i % 7) FROM n",
    ),
    rows(
        "recursive_tree",
        "all whom a customer sent, and whom these sent",
        "WITH RECURSIVE sent (id, depth) AS (SELECT 1, 0 UNION ALL \
         SELECT c.id, s.depth + 1 FROM sent s JOIN customers c ON c.referred_by = s.id) \
         SELECT depth, count(*) FROM sent GROUP BY depth",
    ),
    rows(
        "recursive_days",
        "the days of a fortnight and how many orders each has",
        "WITH RECURSIVE days (day) AS (SELECT '2022-03-01' UNION ALL \
         SELECT date(day, '+1 day') FROM days WHERE day < '2022-03-14') \
         SELECT day, count(o.id) FROM days LEFT JOIN orders o ON o.placed = day GROUP BY day",
    ),
    sorted(
        "group_first",
        "counts of the first five groups of an index",
        "SELECT customer_id, count(*) FROM orders GROUP BY customer_id \
         ORDER BY customer_id LIMIT 5",
    ),
    sorted(
        "group_small",
        "counts of all groups of an index",
        "SELECT customer_id, count(*) FROM orders GROUP BY customer_id ORDER BY customer_id",
    ),
    rows(
        "group_few",
        "many sums of few groups",
        "SELECT discount, count(*), sum(quantity), sum(quantity * price), avg(price), \
         sum(quantity * price * (100 - discount)), min(due), max(due) FROM lines \
         WHERE due < '2023-11-01' GROUP BY discount",
    ),
    sorted(
        "group_many",
        "groups of an integer, the best twenty",
        "SELECT product_id, sum(quantity) AS sold, count(*) FROM lines GROUP BY product_id \
         ORDER BY sold DESC, product_id LIMIT 20",
    ),
    rows(
        "group_many_join",
        "groups, then a join with what is grouped",
        "SELECT p.category, sum(t.sold * p.price), max(t.sold) FROM (SELECT product_id, \
         sum(quantity) AS sold FROM lines GROUP BY product_id) t \
         JOIN products p ON p.id = t.product_id GROUP BY p.category",
    ),
    rows(
        "group_text",
        "groups by a text and an integer",
        "SELECT status, customer_id % 100 AS part, count(*), sum(total) FROM orders \
         GROUP BY status, part",
    ),
    rows(
        "having",
        "groups in the order of an index, few of them kept",
        "SELECT order_id, sum(quantity) FROM lines GROUP BY order_id \
         HAVING count(*) = 5 AND min(discount) > 5",
    ),
    rows(
        "count_distinct",
        "count(DISTINCT) by an index",
        "SELECT count(DISTINCT product_id) FROM lines",
    ),
    rows(
        "count_distinct_groups",
        "count(DISTINCT) in groups",
        "SELECT channel, count(DISTINCT customer_id), count(DISTINCT shop_id) FROM orders \
         GROUP BY channel",
    ),
    rows(
        "distinct",
        "DISTINCT of two columns",
        "SELECT count(*) FROM (SELECT DISTINCT shop_id, channel, status FROM orders)",
    ),
    rows(
        "rank",
        "rank() in partitions",
        "SELECT count(*), sum(id) FROM (SELECT id, rank() OVER (PARTITION BY customer_id \
         ORDER BY total DESC) AS place FROM orders) WHERE place <= 2",
    ),
    rows(
        "running",
        "running sums in the order of a key",
        "SELECT sum(s), max(s) FROM (SELECT sum(quantity) OVER (PARTITION BY order_id \
         ORDER BY position) AS s FROM lines)",
    ),
    rows(
        "moving",
        "moving sums of eight rows",
        "SELECT max(s), min(s) FROM (SELECT sum(total) OVER (ORDER BY placed, id \
         ROWS BETWEEN 7 PRECEDING AND CURRENT ROW) AS s FROM orders)",
    ),
    rows(
        "lag",
        "lag() in partitions",
        "SELECT count(*), sum(total - before) FROM (SELECT total, lag(total) OVER \
         (PARTITION BY customer_id ORDER BY placed, id) AS before FROM orders)",
    ),
    rows(
        "first_of_each",
        "row_number(), the first three of each",
        "SELECT status, id, total FROM (SELECT status, id, total, row_number() OVER \
         (PARTITION BY status ORDER BY total DESC, id) AS n FROM orders) WHERE n <= 3",
    ),
    sorted(
        "sort_all",
        "ORDER BY of all rows by an integer",
        "SELECT id, total FROM orders ORDER BY total, id",
    ),
    sorted(
        "sort_top",
        "ORDER BY with LIMIT",
        "SELECT id, total, placed FROM orders ORDER BY total DESC, id LIMIT 10",
    ),
    sorted(
        "sort_text",
        "ORDER BY texts with LIMIT and OFFSET",
        "SELECT status, channel, id FROM orders ORDER BY status, channel, id LIMIT 20 OFFSET 20000",
    ),
    sorted(
        "sort_by_index",
        "ORDER BY an index with LIMIT",
        "SELECT id, total, note FROM orders ORDER BY placed, id LIMIT 1000",
    ),
    rows(
        "like",
        "LIKE with a pattern within",
        "SELECT count(*) FROM orders WHERE note LIKE '%bell%quiet%'",
    ),
    rows(
        "glob",
        "GLOB with a pattern within",
        "SELECT count(*), sum(price) FROM products WHERE name GLOB '*kettle*teal*'",
    ),
    rows(
        "substr",
        "groups by substr()",
        "SELECT substr(placed, 1, 7) AS month, count(*), sum(total) FROM orders GROUP BY month",
    ),
    rows(
        "upper",
        "upper() and LIKE from the start",
        "SELECT count(*) FROM customers WHERE upper(name) LIKE 'MAR%'",
    ),
    rows(
        "strftime",
        "groups by strftime()",
        "SELECT strftime('%Y-%W', placed) AS week, count(*) FROM orders GROUP BY week",
    ),
    rows(
        "date",
        "date() with a modifier",
        "SELECT count(*) FROM orders WHERE date(placed, '+14 days') > '2022-02-02'",
    ),
    rows(
        "case",
        "sums of CASE",
        "SELECT sum(CASE WHEN quantity > 15 THEN 3 WHEN discount > 5 THEN 2 ELSE 1 END), \
         sum(CASE WHEN sent > due THEN 1 ELSE 0 END) FROM lines",
    ),
    rows(
        "coalesce",
        "sums of coalesce() and nullif()",
        "SELECT sum(coalesce(nullif(discount, 4), 7)), count(coalesce(sent, 'never')) FROM lines",
    ),
    rows(
        "json",
        "values out of JSON",
        "SELECT sum(json_extract(details, '$.size.length')), \
         count(*) FILTER (WHERE details ->> '$.colour' = 'teal') FROM products",
    ),
    rows(
        "json_each",
        "elements of JSON arrays, grouped",
        "SELECT t.value, count(*) FROM products p, json_each(p.details, '$.tags') t \
         GROUP BY t.value",
    ),
    rows(
        "group_concat",
        "group_concat() of each customer's orders",
        "SELECT customer_id, length(group_concat(id)), group_concat(status ORDER BY id) \
         FROM orders GROUP BY customer_id",
    ),
    rows(
        "compound",
        "UNION, EXCEPT and INTERSECT",
        "SELECT count(*), sum(product_id) FROM (SELECT product_id FROM lines WHERE discount = 0 \
         UNION SELECT product_id FROM stock EXCEPT SELECT id FROM products WHERE price < 5000 \
         INTERSECT SELECT product_id FROM stock WHERE quantity > 20)",
    ),
    rows(
        "or_by_indexes",
        "OR over two indexes",
        "SELECT count(*), sum(total) FROM orders WHERE customer_id = 17 \
         OR placed BETWEEN '2022-05-05' AND '2022-05-06'",
    ),
    rows(
        "range_by_index",
        "sum over a range of an index",
        "SELECT count(*), sum(total) FROM orders WHERE placed >= '2022-05-01' \
         AND placed < '2022-06-01'",
    ),
    rows(
        "filtered_sum",
        "sum with three ranges, no index",
        "SELECT sum(price * quantity) FROM lines WHERE due >= '2021-01-01' AND due < '2022-01-01' \
         AND discount BETWEEN 3 AND 5 AND quantity < 12",
    ),
    sorted(
        "first_groups",
        "the first ten groups by an index that lacks what is summed",
        "SELECT customer_id, sum(total) FROM orders GROUP BY customer_id ORDER BY customer_id \
         LIMIT 10",
    ),
    sorted(
        "largest_groups",
        "the ten largest groups, by an index",
        "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id \
         ORDER BY n DESC, customer_id LIMIT 10",
    ),
    rows(
        "rows_as_groups",
        "each customer with the count of its orders",
        "SELECT c.id, c.name, count(o.id) FROM customers c \
         LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.id",
    ),
    sorted(
        "first_distinct",
        "the first twenty customers of open orders",
        "SELECT DISTINCT customer_id FROM orders WHERE status = 'open' ORDER BY customer_id \
         LIMIT 20",
    ),
    sorted(
        "page_of_table",
        "a page of a table, from its end",
        "SELECT id, placed, total FROM orders ORDER BY id DESC LIMIT 20 OFFSET 5000",
    ),
    sorted(
        "page_of_index",
        "a page of an index, from its end",
        "SELECT placed, id, total FROM orders ORDER BY placed DESC, id DESC LIMIT 20 OFFSET 5000",
    ),
];
