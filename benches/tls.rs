//! What TLS costs a FIX session.
//!
//! `cargo bench --bench tls`. Two figures, each against plain TCP or nothing in the same run:
//!
//! - the gateway's own cost of one order without sockets: its record is decrypted, and its report is encrypted;
//! - the round trip of an order and its report over loopback. The far end is the gateway's own [`Stream`], which spins and
//!   answers each order with a report; the near end is a rustls client that spins too. Rounds with TLS and without
//!   alternate, because the speed of the machine changes from minute to minute: compare within a round.
//!
//! TLS 1.3 with the cipher that both ends choose by themselves, X25519, and an ECDSA certificate.

use gateway::stream::Stream;
use net::TcpOptions;
use net::tcp::{Received, TcpListener};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 5;
const ROUND_TRIPS: usize = 20_000;
/// Enough to see that it runs, for `cargo test --benches`.
const ROUND_TRIPS_TEST: usize = 50;
/// Orders between two looks at the clock.
const BATCH: usize = 64;
/// A NewOrderSingle and its ExecutionReport, bytes.
const ORDER_LENGTH: usize = 181;
const REPORT_LENGTH: usize = 260;
/// Nothing takes so long: then the other end is gone.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tls: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (rounds, count) = if is_bench {
        (ROUNDS, ROUND_TRIPS)
    } else {
        (1, ROUND_TRIPS_TEST)
    };
    let ends = Ends::new()?;
    println!(
        "{} · order of {ORDER_LENGTH} bytes, report of {REPORT_LENGTH} · {count} orders a round",
        net::host::cpu_model()
    );
    println!(
        "{:>5} {:>14} {:>12} {:>10} {:>8} {:>12} {:>10} {:>8}",
        "round", "crypto ns p50", "plain p50 µs", "tls p50 µs", "tls/1", "plain p99 µs", "tls p99 µs", "tls/1"
    );
    for round in 1..=rounds {
        let crypto = crypto(&ends, count.div_ceil(BATCH))?;
        let mut plain = round_trips(&ends, count, false)?;
        let mut tls = round_trips(&ends, count, true)?;
        let [plain_50, tls_50] = [&mut plain, &mut tls].map(|samples| per_mille(samples, 500));
        let [plain_99, tls_99] = [&mut plain, &mut tls].map(|samples| per_mille(samples, 990));
        println!(
            "{round:>5} {crypto:>14} {:>12} {:>10} {:>8} {:>12} {:>10} {:>8}",
            us(plain_50),
            us(tls_50),
            ratio(tls_50, plain_50),
            us(plain_99),
            us(tls_99),
            ratio(tls_99, plain_99)
        );
    }
    Ok(())
}

/// Settings of both ends, with a certificate of the moment.
struct Ends {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Ends {
    fn new() -> Outcome<Self> {
        let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        let certificate = issued.cert.der().clone();
        let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }

    fn client(&self) -> Outcome<ClientConnection> {
        Ok(ClientConnection::new(
            Arc::clone(&self.client),
            ServerName::try_from("localhost")?,
        )?)
    }
}

/// Median nanoseconds to decrypt an order and encrypt its report, in memory.
fn crypto(ends: &Ends, batches: usize) -> Outcome<u128> {
    let mut client = ends.client()?;
    let mut server = ServerConnection::new(Arc::clone(&ends.server))?;
    while client.is_handshaking() || server.is_handshaking() {
        carry(&mut client, &mut server)?;
    }
    let (order, report) = ([b'o'; ORDER_LENGTH], [b'r'; REPORT_LENGTH]);
    let mut costs = Vec::with_capacity(batches);
    let mut received = [0; 4_096];
    let mut answer = Vec::with_capacity(4 * BATCH * REPORT_LENGTH);
    for _ in 0..batches {
        let mut records = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            let mut record = Vec::new();
            client.writer().write_all(&order)?;
            client.write_tls(&mut record)?;
            records.push(record);
        }
        answer.clear();
        let start = Instant::now();
        for record in &records {
            server.read_tls(&mut &record[..])?;
            server.process_new_packets()?;
            assert_eq!(server.reader().read(&mut received)?, ORDER_LENGTH);
            server.writer().write_all(&report)?;
            server.write_tls(&mut answer)?;
        }
        costs.push(start.elapsed().as_nanos() / BATCH as u128);
        let mut rest = &answer[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest)?;
            client.process_new_packets()?;
            while client.reader().read(&mut received).is_ok() {}
        }
    }
    costs.sort_unstable();
    Ok(costs[costs.len() / 2])
}

/// Brings what each end has to say to the other.
fn carry(client: &mut ClientConnection, server: &mut ServerConnection) -> Outcome<()> {
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes)?;
    server.read_tls(&mut &bytes[..])?;
    server.process_new_packets()?;
    bytes.clear();
    while server.wants_write() {
        server.write_tls(&mut bytes)?;
    }
    client.read_tls(&mut &bytes[..])?;
    client.process_new_packets()?;
    Ok(())
}

/// Nanoseconds from each order to its report, over loopback.
fn round_trips(ends: &Ends, count: usize, with_tls: bool) -> Outcome<Vec<u64>> {
    let options = TcpOptions::default();
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &options)?;
    let address = listener.local_addr()?;
    let server = with_tls.then(|| Arc::clone(&ends.server));
    let far = std::thread::spawn(move || answer(&listener, server.as_ref()).map_err(|error| error.to_string()));
    let tcp = TcpStream::connect(address)?;
    tcp.set_nodelay(true)?;
    tcp.set_nonblocking(true)?;
    let tls = if with_tls { Some(ends.client()?) } else { None };
    let mut near = Near { tcp, tls };
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        near.send(&[b'o'; ORDER_LENGTH])?;
        near.receive(REPORT_LENGTH)?;
        samples.push(u64::try_from(start.elapsed().as_nanos())?);
    }
    drop(near);
    far.join().map_err(|_| "the far end panicked")??;
    Ok(samples)
}

/// The far end: answers each order with a report until the client is gone.
fn answer(listener: &TcpListener, tls: Option<&Arc<ServerConfig>>) -> std::io::Result<()> {
    let tcp = loop {
        if let Some((tcp, _)) = listener.accept()? {
            break tcp;
        }
        std::hint::spin_loop();
    };
    let mut stream = match tls {
        None => Stream::Tcp(tcp),
        Some(config) => Stream::tls(tcp, config)?,
    };
    let mut buffer = [0; 4_096];
    let mut pending = 0;
    loop {
        match stream.recv(&mut buffer) {
            Ok(Received::Bytes(count)) => pending += count,
            Ok(Received::Nothing) => std::hint::spin_loop(),
            // The client has what it came for.
            Ok(Received::Closed) | Err(_) => return Ok(()),
        }
        while pending >= ORDER_LENGTH {
            pending -= ORDER_LENGTH;
            stream.send(&[b'r'; REPORT_LENGTH])?;
        }
    }
}

/// The near end.
struct Near {
    tcp: TcpStream,
    tls: Option<ClientConnection>,
}

impl Near {
    fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(self.tcp.write_all(bytes)?);
        };
        tls.writer().write_all(bytes)?;
        while tls.wants_write() {
            match tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Spins until so many bytes have come; of TLS the handshake too.
    fn receive(&mut self, length: usize) -> Outcome<()> {
        let start = Instant::now();
        let mut buffer = [0; 4_096];
        let mut received = 0;
        while received < length {
            match self.read(&mut buffer) {
                Ok(0) => return Err("the far end closed".into()),
                Ok(count) => received += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(error) => return Err(error.into()),
            }
            if start.elapsed() > PATIENCE {
                return Err("no report came".into());
            }
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.tcp.read(buffer);
        };
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
        tls.read_tls(&mut self.tcp)?;
        tls.process_new_packets().map_err(std::io::Error::other)?;
        // The next step of the handshake, and the order that waits for its end.
        while tls.wants_write() {
            tls.write_tls(&mut self.tcp)?;
        }
        tls.reader().read(buffer)
    }
}

/// By nearest rank.
fn per_mille(samples: &mut [u64], per_mille: usize) -> u64 {
    samples.sort_unstable();
    samples[(samples.len() * per_mille).div_ceil(1_000).max(1) - 1]
}

fn us(ns: u64) -> String {
    format!("{}.{:02}", ns / 1_000, ns % 1_000 / 10)
}

fn ratio(of: u64, to: u64) -> String {
    let hundredths = of * 100 / to.max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
