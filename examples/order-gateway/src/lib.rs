//! An order gateway: a service that must not lose an order it has answered.
//!
//! An order arrives as JSON over HTTP. It is parsed and validated, appended to a
//! `fulgurite-wal` log, and answered once the log was flushed; requests that
//! arrive during a flush share the next one ([`durable`]). On start the orders
//! are read back from the log. So whatever was answered is there after the
//! process was killed, at any moment.
//!
//! - `POST /orders` with `{"id", "symbol", "side", "price", "quantity"}` answers
//!   201 with the order's position in the log and the time of each stage; 409
//!   for an id that was seen; 422 for an order that is none; 503 when the log is
//!   full or has failed (then the outcome of the order is unknown).
//! - `GET /orders/{id}` answers the order.

pub mod bare;
pub mod book;
pub mod durable;
pub mod load;
pub mod order;
pub mod server;
