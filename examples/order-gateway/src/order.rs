//! What an order is, as JSON and in the log.

use fulgurite_wal::{Entry, ReplayError};
use serde::{Deserialize, Serialize};

/// Which way an order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Buys.
    Buy,
    /// Sells.
    Sell,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Chosen by the client, unique.
    pub id: String,
    /// What is bought or sold.
    pub symbol: String,
    /// Which way.
    pub side: Side,
    /// Limit price in hundredths.
    pub price: u64,
    /// How many.
    pub quantity: u32,
}

impl Order {
    /// What is wrong with the order, if anything.
    pub fn validate(&self) -> Result<(), &'static str> {
        if !(1..=64).contains(&self.id.len()) || !self.id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("id: 1 to 64 visible ASCII characters");
        }
        if !(1..=8).contains(&self.symbol.len())
            || !self.symbol.bytes().all(|b| b.is_ascii_uppercase())
        {
            return Err("symbol: 1 to 8 letters A to Z");
        }
        if self.price == 0 || self.price > 1_000_000_000 {
            return Err("price: 1 to 1,000,000,000 hundredths");
        }
        if self.quantity == 0 {
            return Err("quantity: at least 1");
        }
        Ok(())
    }
}

/// In the log: version 1, side, price, quantity, length of the symbol, symbol, id.
impl Entry for Order {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([1, u8::from(self.side == Side::Sell)]);
        out.extend(self.price.to_le_bytes());
        out.extend(self.quantity.to_le_bytes());
        out.push(self.symbol.len() as u8);
        out.extend(self.symbol.as_bytes());
        out.extend(self.id.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, ReplayError> {
        let (head, text) = bytes.split_at_checked(15).ok_or("an order cut short")?;
        if head[0] != 1 {
            return Err(format!("an order of version {}", head[0]).into());
        }
        let (symbol, id) = text
            .split_at_checked(head[14] as usize)
            .ok_or("an order cut short")?;
        Ok(Self {
            id: std::str::from_utf8(id)?.to_owned(),
            symbol: std::str::from_utf8(symbol)?.to_owned(),
            side: if head[1] == 0 { Side::Buy } else { Side::Sell },
            price: u64::from_le_bytes(head[2..10].try_into()?),
            quantity: u32::from_le_bytes(head[10..14].try_into()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            id: "a-1".into(),
            symbol: "ACME".into(),
            side: Side::Sell,
            price: 12_345,
            quantity: 7,
        }
    }

    #[test]
    fn an_order_survives_the_log() {
        let mut bytes = Vec::new();
        order().encode(&mut bytes);
        assert_eq!(Order::decode(&bytes).unwrap(), order());
        for len in 0..bytes.len() - 3 {
            assert!(Order::decode(&bytes[..len]).is_err() || len >= 19, "{len}");
        }
    }

    #[test]
    fn bad_orders_are_told_what_is_wrong() {
        assert_eq!(order().validate(), Ok(()));
        let bad = |change: fn(&mut Order)| {
            let mut order = order();
            change(&mut order);
            order
                .validate()
                .unwrap_err()
                .split(':')
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(bad(|order| order.id.clear()), "id");
        assert_eq!(bad(|order| order.symbol = "acme".into()), "symbol");
        assert_eq!(bad(|order| order.price = 0), "price");
        assert_eq!(bad(|order| order.quantity = 0), "quantity");
    }
}
