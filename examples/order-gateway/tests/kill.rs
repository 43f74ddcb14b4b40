//! The gateway is killed at random moments under load, and started again: every
//! order that was answered is there. And what it does with bad requests.

use order_gateway::load::Client;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const KILLS: u64 = 6;
const CLIENTS: usize = 4;
const SEED: u64 = 0x0de5_c0de;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("order-gateway-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A gateway in a process of its own.
struct Gateway {
    process: Child,
    address: SocketAddr,
}

impl Gateway {
    fn start(log: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_order-gateway"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .arg(log)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split([' ', ','])
            .find_map(|word| word.parse().ok())
            .unwrap_or_else(|| panic!("{line}"));
        Self { process, address }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn no_answered_order_is_lost_by_a_kill() {
    let folder = Folder::new("kill");
    let log = folder.0.join("orders.log");
    let answered = Mutex::new(Vec::new());
    println!("seed {SEED:#x}");
    let mut random = SEED;
    for life in 0..KILLS {
        let gateway = Mutex::new(Gateway::start(&log));
        let address = gateway.lock().unwrap().address;
        check(address, &answered.lock().unwrap());
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Killed in the middle of things, after so many answers.
        let kill_after = 20 + (random >> 33) as usize % 200;
        let count = AtomicUsize::new(0);
        // Connected before any of them orders: others may have had all the answers
        // until the kill before the last one's thread runs.
        let clients = [(); CLIENTS].map(|()| {
            let runtime = runtime();
            let connection = runtime.block_on(Client::connect(address)).unwrap();
            (runtime, connection)
        });
        std::thread::scope(|scope| {
            for (client, (runtime, mut connection)) in clients.into_iter().enumerate() {
                let (answered, gateway, count) = (&answered, &gateway, &count);
                scope.spawn(move || {
                    for number in 0.. {
                        let id = format!("{life}-{client}-{number}");
                        if runtime.block_on(connection.order(&id)).is_err() {
                            break;
                        }
                        answered.lock().unwrap().push(id);
                        if count.fetch_add(1, Ordering::Relaxed) + 1 == kill_after {
                            gateway.lock().unwrap().process.kill().unwrap();
                        }
                    }
                });
            }
        });
    }
    let gateway = Gateway::start(&log);
    let answered = answered.into_inner().unwrap();
    assert!(answered.len() >= 20 * KILLS as usize);
    check(gateway.address, &answered);
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().build().unwrap()
}

fn check(address: SocketAddr, answered: &[String]) {
    let runtime = runtime();
    let mut client = runtime.block_on(Client::connect(address)).unwrap();
    for id in answered {
        let path = format!("/orders/{id}");
        let (status, body) = runtime.block_on(client.request("GET", &path, "")).unwrap();
        assert_eq!(status, 200, "order {id} was answered and is gone: {body:?}");
    }
}

#[test]
fn bad_requests_are_refused_and_change_nothing() {
    let folder = Folder::new("bad");
    let gateway = Gateway::start(&folder.0.join("orders.log"));
    let runtime = runtime();
    let mut client = runtime.block_on(Client::connect(gateway.address)).unwrap();
    let mut ask = |method: &str, path: &str, body: &str| {
        let answer = runtime.block_on(client.request(method, path, body));
        answer.unwrap().0
    };
    let mut post = |body: &str| ask("POST", "/orders", body);
    for body in [
        "",
        "{",
        "[]",
        r#"{"id":"x"}"#,
        r#"{"id":"x","symbol":"ACME","side":"hold","price":1,"quantity":1}"#,
        r#"{"id":"x","symbol":"acme","side":"buy","price":1,"quantity":1}"#,
        r#"{"id":"x","symbol":"ACME","side":"buy","price":-1,"quantity":1}"#,
        r#"{"id":"x","symbol":"ACME","side":"buy","price":1,"quantity":0}"#,
    ] {
        assert_eq!(post(body), 422, "{body}");
    }
    let good = r#"{"id":"x","symbol":"ACME","side":"buy","price":1,"quantity":1}"#;
    assert_eq!(post(good), 201);
    assert_eq!(post(good), 409);
    assert_eq!(ask("GET", "/orders/y", ""), 404);
    assert_eq!(ask("GET", "/orders/x", ""), 200);
}
