//! Bytes between a stream and its packets: fixed memory, allocated once, the same for both directions.

use crate::tcp::{Received, TcpStream};
use std::io;

/// A queue of bytes with one gap-free front. Receiving, it holds what came and is not a whole packet yet; sending, what
/// the kernel has not taken yet.
#[derive(Debug)]
pub struct StreamBuffer {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

impl StreamBuffer {
    /// Room for `capacity` bytes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            memory: vec![0; capacity].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    /// The bytes queued, oldest first.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Takes the oldest `length` bytes off.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn consume(&mut self, length: usize) {
        assert!(length <= self.end - self.start, "consumed more than is there");
        self.start += length;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// The free memory behind the bytes, all of it: what is queued moves to the front first. Write there, then
    /// [`commit`](Self::commit).
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            // What is queued here is a part of one packet, or what a slow peer left: short.
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.memory[self.end..]
    }

    /// Queues the first `length` bytes of the [`room`](Self::room).
    ///
    /// # Panics
    /// When there was no such room.
    pub fn commit(&mut self, length: usize) {
        assert!(
            length <= self.memory.len() - self.end,
            "committed more than there was room for"
        );
        self.end += length;
    }

    /// Receives what is there, as [`TcpStream::recv`]. A full buffer receives nothing: that holds the peer back.
    ///
    /// # Errors
    /// The connection failed.
    pub fn receive(&mut self, stream: &mut TcpStream) -> io::Result<Received> {
        let room = self.room();
        if room.is_empty() {
            return Ok(Received::Nothing);
        }
        let received = stream.recv(room)?;
        if let Received::Bytes(length) = received {
            self.commit(length);
        }
        Ok(received)
    }

    /// Sends what is queued, as far as the kernel takes it, and gives how many bytes that was.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        if self.is_empty() {
            return Ok(0);
        }
        let sent = stream.send(self.bytes())?;
        self.consume(sent);
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(buffer: &mut StreamBuffer, bytes: &[u8]) {
        buffer.room()[..bytes.len()].copy_from_slice(bytes);
        buffer.commit(bytes.len());
    }

    #[test]
    fn bytes_come_out_in_the_order_they_went_in_and_the_room_comes_back() {
        let mut buffer = StreamBuffer::new(8);
        put(&mut buffer, b"abcdef");
        buffer.consume(4);
        assert_eq!(buffer.room().len(), 6);
        put(&mut buffer, b"ghijkl");
        assert_eq!(buffer.bytes(), b"efghijkl");
        assert!(buffer.room().is_empty());
        buffer.consume(8);
        assert!(buffer.is_empty());
        assert_eq!(buffer.room().len(), 8);
    }

    #[test]
    #[should_panic(expected = "consumed more than is there")]
    fn more_than_is_there_cannot_be_consumed() {
        let mut buffer = StreamBuffer::new(8);
        put(&mut buffer, b"ab");
        buffer.consume(3);
    }
}
