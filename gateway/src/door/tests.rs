//! What takes long is done beside the door.

use super::keeper::Keeper;
use super::{Delivery, queues};
use crate::config::Config;
use crate::status::DoorStatus;
use latency::clock::Clock;
use proto::fix::{self, TimePrecision};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, KeyLog, RootCertStore, ServerConfig, StreamOwned};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Notes on which thread the keys of a connection are made.
#[derive(Debug, Default)]
struct Threads(Mutex<Vec<String>>);

impl KeyLog for Threads {
    fn log(&self, _: &str, _: &[u8], _: &[u8]) {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        self.0.lock().expect("nobody panicked").push(name);
    }
}

/// Settings of both ends, with a certificate of the moment.
fn tls(threads: &Arc<Threads>) -> (ServerConfig, ClientConfig) {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let certificate = issued.cert.der().clone();
    let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("they belong together");
    server.key_log = Arc::clone(threads) as Arc<dyn KeyLog>;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, client)
}

fn logon(clock: &Clock) -> Vec<u8> {
    let header = fix::MessageHeader {
        version: fix::Version::Fix44,
        sender_comp_id: b"TRADER",
        target_comp_id: b"TICKGATE",
        sequence: 1,
        sending_time: clock.now(),
        orig_sending_time: None,
    };
    let mut buffer = [0; fix::MAX_MESSAGE_LENGTH];
    let mut encoder = fix::Encoder::start(&mut buffer, b"A", &header, TimePrecision::Milliseconds);
    encoder.number(fix::tag::ENCRYPT_METHOD, 0);
    encoder.number(fix::tag::HEART_BT_INT, 30);
    encoder.finish().expect("it fits").to_vec()
}

/// A client that says Logon as soon as it can, with the last message of the handshake.
fn log_on(address: SocketAddr, config: ClientConfig, logon: &[u8]) {
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = ClientConnection::new(Arc::new(config), name).expect("settings");
    let tcp = TcpStream::connect(address).expect("it listens");
    let mut stream = StreamOwned::new(tls, tcp);
    stream
        .write_all(logon)
        .and_then(|()| stream.flush())
        .expect("the door reads");
}

#[test]
fn a_tls_handshake_is_not_done_on_the_doors_thread() {
    let threads = Arc::new(Threads::default());
    let (server, client) = tls(&threads);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/gateway.toml");
    let mut config = Config::load(&example).expect("the example is right");
    config.tls = Some(Arc::new(server));
    config.shards[0].fix_listen = None;
    config.shards[0].native_listen = None;
    config.door.fix_tls_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let config = Arc::new(config);
    let clock = Clock::start();
    let (queues, mut arrivals) = queues(1);
    let mut keeper = Keeper::new(&config, clock, &[], queues, Arc::new(DoorStatus::default())).expect("a poller");
    let address = keeper.listen(&config, &[]).expect("a port").fix_tls.expect("a port");
    let message = logon(&clock);
    let client = std::thread::spawn(move || log_on(address, client, &message));
    let arrival = loop {
        keeper.turn();
        match arrivals[0].pop() {
            Ok(Delivery::Client(arrival)) => break arrival,
            Ok(Delivery::Open(..) | Delivery::Closed(_)) | Err(_) => {}
        }
    };
    client.join().expect("it was let in");
    assert!(arrival.bytes.starts_with(b"8=FIX.4.4"));
    let threads = threads.0.lock().expect("nobody panicked");
    assert!(
        !threads.is_empty() && threads.iter().all(|name| name == "door-checks"),
        "{threads:?}"
    );
}
