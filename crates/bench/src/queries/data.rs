//! The shops' data: tables, indexes, and rows drawn from a seed.
//!
//! Amounts are whole cents and weights multiples of an eighth, so that sums do not depend on
//! the order in which rows are added.

use crate::data;
use anyhow::Result;
use std::fmt::Write;

/// Tables, and the indexes that an application has which uses them.
pub const TABLES: &str = "
    CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT NOT NULL, land TEXT NOT NULL);
    CREATE TABLE shops (id INTEGER PRIMARY KEY, region_id INTEGER NOT NULL REFERENCES regions,
        name TEXT NOT NULL, opened TEXT NOT NULL, area INTEGER NOT NULL);
    CREATE TABLE suppliers (id INTEGER PRIMARY KEY, region_id INTEGER NOT NULL REFERENCES regions,
        name TEXT NOT NULL, rating INTEGER NOT NULL, terms TEXT);
    CREATE TABLE customers (id INTEGER PRIMARY KEY, region_id INTEGER NOT NULL REFERENCES regions,
        name TEXT NOT NULL, email TEXT NOT NULL UNIQUE, level TEXT NOT NULL, joined TEXT NOT NULL,
        referred_by INTEGER REFERENCES customers);
    CREATE TABLE products (id INTEGER PRIMARY KEY, supplier_id INTEGER NOT NULL REFERENCES suppliers,
        name TEXT NOT NULL, category TEXT NOT NULL, price INTEGER NOT NULL, weight REAL NOT NULL,
        details TEXT NOT NULL);
    CREATE TABLE stock (shop_id INTEGER NOT NULL REFERENCES shops,
        product_id INTEGER NOT NULL REFERENCES products, quantity INTEGER NOT NULL,
        wanted INTEGER NOT NULL, counted TEXT, PRIMARY KEY (shop_id, product_id)) WITHOUT ROWID;
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers,
        shop_id INTEGER NOT NULL REFERENCES shops, placed TEXT NOT NULL, status TEXT NOT NULL,
        channel TEXT NOT NULL, total INTEGER NOT NULL, note TEXT);
    CREATE TABLE lines (order_id INTEGER NOT NULL REFERENCES orders, position INTEGER NOT NULL,
        product_id INTEGER NOT NULL REFERENCES products, quantity INTEGER NOT NULL,
        price INTEGER NOT NULL, discount INTEGER NOT NULL, sent TEXT, due TEXT NOT NULL,
        PRIMARY KEY (order_id, position));
    CREATE INDEX shops_by_region ON shops (region_id);
    CREATE INDEX customers_by_region ON customers (region_id);
    CREATE INDEX customers_by_referrer ON customers (referred_by);
    CREATE INDEX products_by_supplier ON products (supplier_id);
    CREATE INDEX products_by_category ON products (category, price);
    CREATE INDEX stock_by_product ON stock (product_id);
    CREATE INDEX orders_by_customer ON orders (customer_id);
    CREATE INDEX orders_by_placed ON orders (placed);
    CREATE INDEX orders_by_shop ON orders (shop_id, status);
    CREATE INDEX lines_by_product ON lines (product_id);";

/// Rows of each table; an order has three lines in the mean.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub shops: usize,
    pub suppliers: usize,
    pub customers: usize,
    pub products: usize,
    pub orders: usize,
}

impl Sizes {
    /// In proportion to so many lines.
    pub fn of(lines: usize) -> Self {
        let orders = (lines / 3).max(60);
        Self {
            shops: (orders / 600).max(8),
            suppliers: (orders / 200).max(10),
            customers: (orders / 9).max(20),
            products: (orders / 12).max(24),
            orders,
        }
    }
}

const REGIONS: [(&str, &str); 12] = [
    ("Coast", "North"),
    ("Fjords", "North"),
    ("Lakes", "North"),
    ("Moors", "North"),
    ("Plains", "Middle"),
    ("Hills", "Middle"),
    ("Rivers", "Middle"),
    ("Forest", "Middle"),
    ("Islands", "South"),
    ("Valleys", "South"),
    ("Dunes", "South"),
    ("Vineyards", "South"),
];
const CATEGORIES: [&str; 10] = [
    "books", "toys", "tea", "garden", "tools", "lamps", "shoes", "paper", "music", "sports",
];
const COLOURS: [&str; 8] = [
    "amber", "violet", "teal", "ochre", "scarlet", "ivory", "slate", "olive",
];
const THINGS: [&str; 12] = [
    "kettle", "lantern", "puzzle", "notebook", "spade", "hammer", "racket", "flute", "basket",
    "sandal", "atlas", "kite",
];
const LEVELS: [&str; 4] = ["new", "bronze", "silver", "gold"];
const CHANNELS: [&str; 3] = ["web", "counter", "phone"];
const STATES: [&str; 5] = ["open", "packed", "sent", "paid", "returned"];
const NOTES: [&str; 6] = [
    "leave it with the neighbours, please",
    "please ring twice, the bell is quiet",
    "a present: no bill inside, please",
    "deliver to the back door after noon",
    "call before you come",
    "gift wrap in paper of any colour",
];

/// Rows of one INSERT.
const ROWS_A_STATEMENT: usize = 500;

/// Makes statements of many rows each and hands them on.
struct Writer<'a> {
    text: String,
    rows: usize,
    table: &'static str,
    each: &'a mut dyn FnMut(&str) -> Result<()>,
}

impl Writer<'_> {
    fn row(&mut self, values: std::fmt::Arguments<'_>) -> Result<()> {
        match self.rows {
            0 => write!(self.text, "INSERT INTO {} VALUES ({values})", self.table)?,
            _ => write!(self.text, ", ({values})")?,
        }
        self.rows += 1;
        if self.rows == ROWS_A_STATEMENT {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows > 0 {
            (self.each)(&self.text)?;
        }
        self.text.clear();
        self.rows = 0;
        Ok(())
    }

    fn table(&mut self, table: &'static str) -> Result<()> {
        self.flush()?;
        self.table = table;
        Ok(())
    }
}

/// Hands on the statements that fill the tables.
pub fn fill(
    rng: &mut fastrand::Rng,
    sizes: Sizes,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut writer = Writer {
        text: String::new(),
        rows: 0,
        table: "regions",
        each,
    };
    for (i, (name, land)) in REGIONS.iter().enumerate() {
        writer.row(format_args!("{}, '{name}', '{land}'", i + 1))?;
    }
    places(rng, sizes, &mut writer)?;
    customers(rng, sizes, &mut writer)?;
    let prices = products(rng, sizes, &mut writer)?;
    orders(rng, sizes, &prices, &mut writer)?;
    writer.flush()
}

fn pick<'a>(rng: &mut fastrand::Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

/// The day so many days after the first of 2020, in years of twelve months of thirty days.
fn day(days: u32) -> String {
    let (year, rest) = (2020 + days / 360, days % 360);
    format!("{year}-{:02}-{:02}", rest / 30 + 1, (rest % 30).min(27) + 1)
}

fn places(rng: &mut fastrand::Rng, sizes: Sizes, writer: &mut Writer<'_>) -> Result<()> {
    writer.table("shops")?;
    for id in 1..=sizes.shops {
        let (region, area) = (rng.usize(1..=REGIONS.len()), rng.u32(40..900));
        let opened = day(rng.u32(..360));
        writer.row(format_args!(
            "{id}, {region}, 'Shop {id}', '{opened}', {area}"
        ))?;
    }
    writer.table("suppliers")?;
    for id in 1..=sizes.suppliers {
        let (region, rating) = (rng.usize(1..=REGIONS.len()), rng.u32(..1_000));
        let terms = match rng.u32(..4) {
            0 => "NULL",
            1 => "'in advance'",
            2 => "'30 days'",
            _ => "'60 days, 2 % off within 10'",
        };
        writer.row(format_args!(
            "{id}, {region}, 'Supplier {id}', {rating}, {terms}"
        ))?;
    }
    Ok(())
}

fn customers(rng: &mut fastrand::Rng, sizes: Sizes, writer: &mut Writer<'_>) -> Result<()> {
    writer.table("customers")?;
    for id in 1..=sizes.customers {
        let (region, name) = (rng.usize(1..=REGIONS.len()), data::name(rng));
        let (level, joined) = (LEVELS[rng.usize(..10) % 4], day(rng.u32(..1_440)));
        let referrer = match rng.u32(..3) {
            0 => "NULL".to_owned(),
            _ if id == 1 => "NULL".to_owned(),
            _ => rng.usize(1..id).to_string(),
        };
        writer.row(format_args!(
            "{id}, {region}, '{name}', 'c{}.{id}@example.com', '{level}', '{joined}', {referrer}",
            rng.u32(..1_000)
        ))?;
    }
    Ok(())
}

/// Also writes what is in stock of them: a fourth of the products in each of the shops by
/// turns. Returns the prices.
fn products(rng: &mut fastrand::Rng, sizes: Sizes, writer: &mut Writer<'_>) -> Result<Vec<u32>> {
    writer.table("products")?;
    let mut prices = Vec::new();
    for id in 1..=sizes.products {
        let supplier = rng.usize(1..=sizes.suppliers);
        let (colour, other) = (pick(rng, &COLOURS), pick(rng, &COLOURS));
        let (thing, category) = (pick(rng, &THINGS), pick(rng, &CATEGORIES));
        let (price, eighths) = (rng.u32(99..20_000), rng.u32(1..80));
        let (length, fragile) = (rng.u32(5..200), rng.u32(..10) == 0);
        prices.push(price);
        writer.row(format_args!(
            "{id}, {supplier}, '{colour} {thing} with {other} trim', '{category}', {price}, {}, \
             '{{\"colour\":\"{colour}\",\"size\":{{\"length\":{length},\"fragile\":{fragile}}},\
             \"tags\":[\"{thing}\",\"{other}\"]}}'",
            f64::from(eighths) / 8.0
        ))?;
    }
    writer.table("stock")?;
    for shop in 1..=sizes.shops {
        for product in (1..=sizes.products).filter(|product| (product + shop) % 16 < 2) {
            let (quantity, wanted) = (rng.u32(..60), rng.u32(5..40));
            let counted = match rng.u32(..5) {
                0 => "NULL".to_owned(),
                _ => format!("'{}'", day(rng.u32(1_200..1_440))),
            };
            writer.row(format_args!(
                "{shop}, {product}, {quantity}, {wanted}, {counted}"
            ))?;
        }
    }
    Ok(prices)
}

fn orders(
    rng: &mut fastrand::Rng,
    sizes: Sizes,
    prices: &[u32],
    writer: &mut Writer<'_>,
) -> Result<()> {
    let mut lines = Vec::new();
    writer.table("orders")?;
    for id in 1..=sizes.orders {
        // A fifth of the customers never order, and some products sell better than others.
        let customer = 1 + rng.usize(..sizes.customers) * 4 / 5;
        let (shop, placed) = (rng.usize(1..=sizes.shops), rng.u32(..1_440));
        let (first, mut total) = (lines.len(), 0);
        for position in 1..=rng.usize(1..=5) {
            let product = rng.usize(..prices.len()).min(rng.usize(..prices.len()));
            let (quantity, discount) = (rng.u32(1..=20), rng.u32(..=10));
            let sent = (rng.u32(..9) > 0).then(|| placed + rng.u32(1..30));
            let due = placed + rng.u32(3..21);
            total += quantity * prices[product] * (100 - discount) / 100;
            lines.push((id, position, product, quantity, discount, sent, due));
        }
        debug_assert!(lines.len() > first, "no order without a line");
        let (status, channel) = (pick(rng, &STATES), pick(rng, &CHANNELS));
        let note = match rng.u32(..3) {
            0 => format!("'{}'", pick(rng, &NOTES)),
            _ => "NULL".to_owned(),
        };
        let (hour, minute) = (rng.u32(7..22), rng.u32(..60));
        writer.row(format_args!(
            "{id}, {customer}, {shop}, '{} {hour:02}:{minute:02}:00', '{status}', '{channel}', \
             {total}, {note}",
            day(placed)
        ))?;
    }
    writer.table("lines")?;
    for (order, position, product, quantity, discount, sent, due) in lines {
        let price = prices[product];
        let sent = sent.map_or("NULL".to_owned(), |sent| format!("'{}'", day(sent)));
        writer.row(format_args!(
            "{order}, {position}, {}, {quantity}, {price}, {discount}, {sent}, '{}'",
            product + 1,
            day(due)
        ))?;
    }
    Ok(())
}
