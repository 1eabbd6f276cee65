//! Packets whose headers and ICRC another implementation made (`tests/rocev2/vectors.py`).

use super::*;
use crate::roce::wire::{Acknowledgement, Opcode, Reth, Syndrome};
use core::net::IpAddr;
use serde_json::Value;
use std::string::String;
use zerocopy::big_endian::{U32, U64};

const VECTORS: &str = include_str!("../../../../tests/vectors/rocev2.json");

#[test]
fn packets_and_their_check_are_those_of_another_implementation() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() > 150);
    let mut shapes = Vec::new();
    for vector in vectors {
        let bytes = bytes(vector["payload"].as_str().unwrap());
        let path = path(vector);
        let id = number(&vector["identification"]) as u16;
        let packet = path.open(&bytes, Identification::Known(id)).expect("the ICRC is right");
        assert_eq!(path.open(&bytes, Identification::Hidden), Some(packet), "{vector}");

        let fields = &vector["fields"];
        let field = |name: &str| fields.get(name).map(number);
        let data = &packet[packet.len() - data_length(fields, true)..][..data_length(fields, false)];
        let expected = Packet {
            opcode: Opcode::from_u8(number(&fields["opcode"]) as u8).unwrap(),
            destination: number(&fields["destination"]) as u32,
            psn: number(&fields["psn"]) as u32,
            ack_request: fields["ack_request"].as_bool().unwrap(),
            is_backward_congestion: number(&fields["opcode"]) == 0x81,
            reth: field("key").map(|key| Reth {
                address: U64::new(field("address").unwrap()),
                remote_key: U32::new(key as u32),
                length: U32::new(field("length").unwrap() as u32),
            }),
            acknowledgement: field("syndrome").map(|syndrome| Acknowledgement {
                syndrome: Syndrome::from_u8(syndrome as u8).unwrap(),
                msn: field("msn").unwrap() as u32,
            }),
            immediate: field("immediate").map(|immediate| immediate as u32),
            payload: data,
        };
        assert_eq!(wire::decode(packet), Ok(expected), "{vector}");
        shapes.push(expected.opcode as u8);

        // Written by us it is the same, but that scapy leaves the migration bit of a notification clear.
        let mut out = vec![0; 8_192];
        let length = expected.encode(&mut out);
        if expected.opcode != Opcode::CongestionNotification {
            assert_eq!(&out[..length], packet, "{vector}");
        }
        if id == 0 {
            out[..length].copy_from_slice(packet);
            let length = path.seal(&mut out, length);
            assert_eq!(out[..length], bytes, "{vector}");
        }
    }
    shapes.sort_unstable();
    shapes.dedup();
    assert_eq!(shapes.len(), 19, "every opcode that is served");
}

fn path(vector: &Value) -> Path {
    let ip = |name: &str| vector[name].as_str().unwrap().parse::<IpAddr>().unwrap();
    let port = number(&vector["source_port"]) as u16;
    let source = SocketAddr::new(ip("source"), port);
    Path::new(source, SocketAddr::new(ip("destination"), wire::UDP_PORT))
}

/// With or without the padding behind it.
fn data_length(fields: &Value, is_padded: bool) -> usize {
    let length = number(&fields["data_length"]) as usize;
    if is_padded { length.next_multiple_of(4) } else { length }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    pairs.map(|pair| u8::from_str_radix(&pair, 16).unwrap()).collect()
}
