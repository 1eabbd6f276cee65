//! From a config to a running exchange: its journal read, its links built where the journal ends.

use super::component::{Exchange, Parts, StartError};
use super::config::{ExchangeConfig, JournalConfig};
use super::journal::{Journal, NoJournal};
use super::recall::Recall;
use super::recovery::Recovery;
use journal::{JournalReader, JournalWriter, Watermark};
use latency::Recorder;
use latency::clock::Clock;
use net::link::{AnyLink, Resume};
use net::{Carrier, Datagram, SetupError};
use proto::journal::Kind;
use proto::mold::Session;
use std::time::Duration;
use types::{Instrument, Timestamp};

/// A journal in files, or none.
#[derive(Debug)]
pub enum AnyJournal {
    /// Nothing is written down.
    None(NoJournal),
    /// In files, with how safe an output wants its record to be.
    Kept(JournalWriter, Watermark),
}

impl<D: Datagram> Exchange<AnyLink<D>, AnyJournal> {
    /// Opens an exchange: goes on where its journal ended, or begins. `decorate` may put something around the carriers of
    /// LTP, such as a network that loses.
    ///
    /// # Errors
    /// The instruments cannot be a market, the journal cannot be gone on with, or a socket cannot be had.
    pub fn open(
        config: &ExchangeConfig,
        instruments: Vec<Instrument>,
        clock: Clock,
        recorder: Recorder,
        mut decorate: impl FnMut(Carrier) -> D,
    ) -> Result<Self, StartError> {
        let core = config.core(instruments);
        let now = clock.now();
        let mut recovery = Recovery::new(&core).map_err(StartError::Listing)?;
        let journal = match &config.journal {
            None => AnyJournal::None(NoJournal),
            Some(settings) => read(settings, &mut recovery)?,
        };
        // A new feed gets a name that none had before it.
        let recovered = recovery.finish(Session::numbered(now.0 / 1_000_000_000, 0));
        let mut links = Vec::with_capacity(config.sessions.len());
        for session in &config.sessions {
            let id = session.rules.id;
            let resume = recovered.resume(id).unwrap_or(Resume::START);
            let link = AnyLink::with_datagrams(&session.link, now.0, resume, &mut decorate);
            links.push((id, link.map_err(StartError::Setup)?));
        }
        let recall = config.journal.as_ref().map(|settings| {
            Recall::start(settings.directory.clone(), config.sessions.len()).map_err(|error| {
                SetupError::new(
                    "starting the thread that reads the journal".to_owned(),
                    error,
                    "raise the limit of processes",
                )
            })
        });
        let parts = Parts {
            recovered,
            links,
            journal,
            recall: recall.transpose().map_err(StartError::Setup)?,
            day: config.trading_day,
            auctions: config.auctions,
            feed: config.feed.clone(),
            history: config.history,
            clock,
            recorder,
        };
        Self::new(parts, now)
    }
}

/// Opens the journal and reads it from its beginning.
fn read(settings: &JournalConfig, recovery: &mut Recovery<'_>) -> Result<AnyJournal, StartError> {
    // The writer first: it puts what a dead process left in memory where the reader finds it.
    let writer = JournalWriter::open(&settings.of_exchange()).map_err(StartError::Journal)?;
    let mut reader = JournalReader::open(&settings.directory).map_err(StartError::Journal)?;
    let mut records = 0_u64;
    while let Some(record) = reader.next_record().map_err(StartError::Journal)? {
        records += 1;
        recovery
            .on_record(record.kind, record.time, record.position, record.payload)
            .map_err(|error| StartError::Replay {
                directory: settings.directory.clone(),
                error,
            })?;
    }
    if records > 0 {
        tracing::info!("{records} records of {} replayed", settings.directory.display());
    }
    Ok(AnyJournal::Kept(writer, settings.watermark))
}

impl JournalConfig {
    /// The journal of an exchange.
    fn of_exchange(&self) -> journal::Config {
        journal::Config {
            directory: self.directory.clone(),
            writer: "exchange".to_owned(),
            ring_bytes: self.ring_bytes,
            segment_bytes: self.segment_bytes,
            direct_io: true,
            poll: self.watermark.drainer_poll(),
            gather_bytes: self.watermark.drainer_gather_bytes(),
            sync_after: SYNC_AFTER,
            cpus: self.drainer_cpu.into_iter().collect(),
        }
    }
}

impl Journal for AnyJournal {
    fn room(&self, bytes: usize) -> bool {
        match self {
            Self::None(none) => none.room(bytes),
            Self::Kept(writer, _) => writer.room(bytes),
        }
    }

    fn append(&mut self, kind: Kind, time: Timestamp, parts: &[&[u8]]) -> u64 {
        match self {
            Self::None(none) => none.append(kind, time, parts),
            Self::Kept(writer, _) => writer.append(kind as u16, RECORD_VERSION, time, parts),
        }
    }

    fn watermark(&self) -> u64 {
        match self {
            Self::None(none) => none.watermark(),
            Self::Kept(writer, watermark) => writer.watermark(*watermark),
        }
    }

    fn progress(&self) -> (u64, u64) {
        match self {
            Self::None(none) => none.progress(),
            Self::Kept(writer, _) => (writer.position(), writer.watermark(Watermark::Synced)),
        }
    }
}

/// Version of the payloads of `record`.
const RECORD_VERSION: u16 = 1;
/// How long written records wait for company before they are synced.
const SYNC_AFTER: Duration = Duration::from_millis(1);
