//! `tickgate report`: recordings into tables, a page and files.

use std::path::PathBuf;

use latency::report::Report;

use crate::Failure;
use crate::output::{self, note};

/// Join the recordings of a run into tables, a page and files.
///
/// Prints the tables. Exits with 1 when an order is unaccounted for or the recordings contradict themselves.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directories that components were started with (--record DIR), all of one run.
    #[arg(required = true, value_name = "DIR")]
    recordings: Vec<PathBuf>,
    /// Write tickgate-report.html, tickgate-report.json, orders.csv and children.csv to this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Take what there is of a recording that is cut off.
    #[arg(long)]
    partial: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = Report::load(&args.recordings, args.partial)?;
    let printed = if args.json { report.json()? } else { report.text() };
    output::print(format_args!("{printed}"));
    if let Some(dir) = &args.out {
        for path in report.write_files(dir)? {
            note!("wrote {}", path.display());
        }
    }
    if report.complete {
        return Ok(());
    }
    let (lost, problems) = (report.accounting.lost(), report.problems.len());
    Err(Failure::new(format_args!(
        "the run is not accounted for: orders lost: {lost}, problems: {problems} (listed above)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latency::{ClientOrder, ClientReport, Header, Protocol, Record, Recording};
    use types::{
        ClientOrderId, ExecType, InstrumentId, OrderId, Price, Quantity, Reason, SessionId, Side, Timestamp, Trigger,
    };

    fn sent(number: u64) -> Record {
        let order = ClientOrder {
            protocol: Protocol::Fix,
            side: Side::Buy,
            session: SessionId(1),
            instrument: InstrumentId(1),
            client_order_id: ClientOrderId(number),
            trigger: Trigger::NONE,
            planned: Timestamp::NONE,
            tick_received: Timestamp::NONE,
            order_sent: Timestamp(1_000 * number),
            quantity: Quantity(1),
            price: Price(Price::UNIT),
        };
        order.into()
    }

    fn acknowledged(number: u64) -> Record {
        let report = ClientReport {
            exec_type: ExecType::New,
            reason: Reason::None,
            session: SessionId(1),
            client_order_id: ClientOrderId(number),
            order_id: OrderId(number),
            time: Timestamp(1_000 * number + 500),
            last_quantity: Quantity::ZERO,
            last_price: Price::NULL,
            leaves: Quantity(1),
        };
        report.into()
    }

    fn report_of(records: &[Record]) -> (tempfile::TempDir, Result<(), Failure>) {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(dir.path(), "client", &Header::default()).unwrap();
        for &record in records {
            recording.write(record).unwrap();
        }
        recording.finish(Timestamp(1)).unwrap();
        let out = dir.path().join("out");
        let args = Args {
            recordings: vec![dir.path().to_owned()],
            out: Some(out),
            json: true,
            partial: false,
        };
        let result = run(&args);
        (dir, result)
    }

    #[test]
    fn a_whole_run_succeeds_and_its_files_are_written() {
        let (dir, result) = report_of(&[sent(1), acknowledged(1)]);
        assert!(result.is_ok());
        for name in [
            "tickgate-report.html",
            "tickgate-report.json",
            "orders.csv",
            "children.csv",
        ] {
            assert!(
                dir.path()
                    .join("out")
                    .join(name)
                    .metadata()
                    .is_ok_and(|file| file.len() > 0),
                "{name}"
            );
        }
    }

    #[test]
    fn a_lost_order_fails_and_the_files_are_written_all_the_same() {
        let (dir, result) = report_of(&[sent(1), acknowledged(1), sent(2)]);
        assert!(result.is_err_and(|failure| failure.to_string().contains("orders lost: 1")));
        assert!(dir.path().join("out/orders.csv").exists());
    }
}
