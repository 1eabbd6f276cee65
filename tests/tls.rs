//! FIX over TLS: with a certificate of the gateway's, and with one of the client's.

use crate::door::{FixClient, assert_refused, is_logon, market, message, start};
use crate::market::{Market, PATIENCE, free_port};
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

type TlsClient = FixClient<StreamOwned<ClientConnection, TcpStream>>;

/// Who signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
type Identity = (Certificate, KeyPair);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn sign(&self, name: &str) -> Identity {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate, key)
    }
}

/// A market with a TLS port, this under `[tls]`, and these sessions more.
fn with_tls(authority: &Authority, more: &str, sessions: &str) -> (Market, SocketAddr) {
    let address = free_port();
    let tls = format!(
        "[door]\nfix_tls_listen = \"{address}\"\n[tls]\ncertificate = \"gateway.pem\"\nkey = \"gateway.key\"\n{more}"
    );
    let market = market(1, "", &format!("{tls}\n{sessions}"));
    let (certificate, key) = authority.sign("localhost");
    market.write("gateway.pem", &certificate.pem());
    market.write("gateway.key", &key.serialize_pem());
    market.write("ca.pem", &authority.0.pem());
    (market, address)
}

/// Connects with TLS, with a certificate of its own or without.
fn connect(address: SocketAddr, authority: &Authority, identity: Option<&Identity>) -> TlsClient {
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
            builder
                .with_client_auth_cert(vec![certificate.der().clone()], key)
                .expect("a certificate with its key")
        }
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = ClientConnection::new(Arc::new(config), name).expect("settings");
    let tcp = TcpStream::connect(address).expect("it listens");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a socket");
    FixClient {
        stream: StreamOwned::new(tls, tcp),
    }
}

fn order(number: u64) -> Vec<u8> {
    let body = format!("11=order-{number}|55=ALFA|54=1|60=20261130-12:00:00|40=2|38=10|44=101.37|59=0|1=1|");
    message("FIX.4.4", "D", "TRADER", number + 2, &body)
}

#[test]
fn a_client_trades_over_tls_and_nobody_comes_in_there_without() {
    let authority = Authority::new();
    let (market, address) = with_tls(&authority, "", "");
    let (mut exchange, mut gateway) = start(&market);
    // No TLS at all, and half a handshake.
    let mut plain = FixClient::connect(address);
    plain.send("FIX.4.4", "A", "TRADER", 1, "98=0|108=30|");
    assert!(!plain.receive().contains("|35=A|"));
    gateway.wait_for("TLS failed");
    let mut half = TcpStream::connect(address).expect("it listens");
    half.write_all(b"\x16\x03\x01\x02\x00\x01").expect("it reads");

    let mut client = connect(address, &authority, None);
    let answer = client.say_logon("FIX.4.4", "TRADER", 1, "");
    assert!(is_logon(&answer), "{answer}");
    // More in one go than a record of TLS holds, and than a receive takes.
    const ORDERS: u64 = 400;
    let orders = (0..ORDERS).flat_map(order).collect::<Vec<_>>();
    assert!(orders.len() > 3 * 16_384);
    client.stream.write_all(&orders).expect("it reads");
    for number in 0..ORDERS {
        let report = client.receive();
        assert!(
            report.contains(&format!("|11=order-{number}|")) && report.contains("|150=0|"),
            "{report}"
        );
    }
    gateway.wait_for("no logon came");
    gateway.stop();
    assert_eq!(client.receive(), "");
    exchange.stop();
    market.assert_replay_is_identical(0);
}

const WITH_CERTIFICATE: &str = r#"[[sessions]]
id = 7
protocol = "fix"
shard = 0
client_comp_id = "DESK7"
client_certificate = "FINGERPRINT"
our_comp_id = "TICKGATE"
accounts = [1]
owner = 9
max_open_orders = 1_000
resend_messages = 1_024
cl_ord_ids = 1_024
send_buffer_bytes = 65_536
"#;

#[test]
fn where_client_certificates_are_asked_for_nobody_comes_in_without() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let desk = authority.sign("desk7");
    let digest = ring::digest::digest(&ring::digest::SHA256, desk.0.der());
    let fingerprint = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect::<Vec<_>>();
    let session = WITH_CERTIFICATE.replace("FINGERPRINT", &fingerprint.join(":"));
    let (market, address) = with_tls(&authority, "client_ca = \"ca.pem\"", &session);
    let (mut exchange, mut gateway) = start(&market);
    for identity in [None, Some(stranger.sign("desk7"))] {
        let mut client = connect(address, &authority, identity.as_ref());
        // The refusal may come while the client still speaks.
        let logon = message("FIX.4.4", "A", "TRADER", 1, "98=0|108=30|");
        let _: Result<_, _> = client.stream.write_all(&logon).and_then(|()| client.stream.flush());
        let mut byte = [0];
        assert!(std::io::Read::read(&mut client.stream, &mut byte).is_err(), "an alert");
    }
    // A certificate that is accepted, but not this session's.
    let other = authority.sign("other");
    let mut client = connect(address, &authority, Some(&other));
    let answer = client.say_logon("FIX.4.4", "DESK7", 1, "");
    assert_refused((client, answer), "not authorised");
    let plain = FixClient::log_on(market.fix[0], "FIX.4.4", "DESK7", 1, "");
    assert_refused(plain, "not authorised");
    let mut client = connect(address, &authority, Some(&desk));
    let answer = client.say_logon("FIX.4.4", "DESK7", 1, "");
    assert!(is_logon(&answer), "{answer}");
    gateway.stop();
    exchange.stop();
}
