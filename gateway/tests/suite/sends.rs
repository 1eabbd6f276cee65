//! What one turn makes for one client leaves in one send.

use crate::fixture::{VENUE, buy, config_with_venue};
use gateway::executor::Component;
use gateway::gateway::Gateway;
use latency::Recorder;
use latency::clock::Clock;
use proto::{native, soup};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use types::Request;

/// Orders in one write: the venue is down, so that each is answered at once.
const ORDERS: u64 = 20;

#[test]
fn replies_of_one_turn_to_one_socket_leave_in_one_send() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config_with_venue(folder.path(), SocketAddr::from(([127, 0, 0, 1], 9)));
    assert_eq!(config.venues.len(), usize::from(VENUE.0) + 1);
    let clock = Clock::start();
    let gateway = Gateway::prepare(config, clock).expect("the gateway starts");
    let status = Arc::clone(&gateway.statuses()[0]);
    let (_door, mut shards) = gateway.open().expect("free ports");
    let shard = shards.pop().expect("a shard");
    let mut worker = shard.build(Recorder::off(), |socket| socket).expect("a worker");
    let mut client = TcpStream::connect(status.addresses().native.expect("it listens")).expect("it listens");
    client.set_nonblocking(true).expect("a socket");
    let mut received = Vec::new();
    let mut turn_until = |client: &mut TcpStream, packets: usize| {
        received.clear();
        let (start, mut chunk) = (Instant::now(), [0; 4_096]);
        while count(&received) < packets {
            worker.turn(clock.now());
            let length = client.read(&mut chunk).unwrap_or(0);
            received.extend_from_slice(&chunk[..length]);
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "{packets} packets do not come"
            );
        }
        worker.finish();
        status.client_sends.load(Ordering::Relaxed)
    };

    let mut packet = [0; soup::MAX_PACKET_LENGTH];
    let login = soup::Login {
        user_name: soup::UserName::new(b"trader").expect("a name"),
        password: soup::Password::BLANK,
        session: soup::SessionName::BLANK,
        sequence: 1,
    };
    let length = soup::write_login_request(&login, &mut packet);
    client.write_all(&packet[..length]).expect("it reads");
    let before = turn_until(&mut client, 1);

    let mut orders = Vec::new();
    for number in 1..=ORDERS {
        let mut message = [0; native::MAX_MESSAGE_LENGTH];
        let length = native::encode_request(&Request::New(buy(number)), &mut message);
        let length = soup::write_unsequenced(&message[..length], &mut packet);
        orders.extend_from_slice(&packet[..length]);
    }
    client.write_all(&orders).expect("it reads");
    let after = turn_until(&mut client, usize::try_from(ORDERS).expect("few"));
    assert_eq!(after, before + 1);
}

/// Whole packets.
fn count(mut bytes: &[u8]) -> usize {
    let mut packets = 0;
    while let Ok(Some((_, used))) = soup::parse(bytes) {
        packets += 1;
        bytes = &bytes[used..];
    }
    packets
}
