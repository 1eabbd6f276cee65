//! Field by field against the crate itch5, another reader of ITCH 5.0.

use feeds::{BinaryFile, sample};
use itch5::messages as theirs;
use itch5::{MessageHandler, Parser};
use proto::itch::{BuySell, Message, SystemEvent, parse};
use std::ops::ControlFlow;

/// The fields of each message, as text.
#[derive(Default)]
struct Fields(Vec<String>);

impl Fields {
    fn add(&mut self, fields: impl std::fmt::Debug) -> ControlFlow<()> {
        self.0.push(format!("{fields:?}"));
        ControlFlow::Continue(())
    }
}

/// What every message starts with, by the accessors that all types of the crate have.
macro_rules! header {
    ($message:expr) => {
        (
            $message.stock_locate(),
            $message.tracking_number(),
            $message.timestamp().to_u64(),
        )
    };
}

fn is_buy(side: &theirs::BuySellIndicator) -> bool {
    matches!(side, theirs::BuySellIndicator::Buy)
}

impl MessageHandler for Fields {
    fn on_system_event(&mut self, m: &theirs::SystemEvent) -> ControlFlow<()> {
        let is_open = matches!(m.event_code(), theirs::SystemEventCode::StartOfMarketHours);
        self.add(("S", header!(m), is_open))
    }
    fn on_stock_directory(&mut self, m: &theirs::StockDirectory) -> ControlFlow<()> {
        let only = matches!(m.round_lots_only(), theirs::RoundLotsOnly::Yes);
        self.add((
            "R",
            header!(m),
            m.stock().as_str(),
            m.round_lot_size(),
            only,
            m.etp_leverage_factor(),
        ))
    }
    fn on_add_order_no_mpid_attribution(&mut self, m: &theirs::AddOrderNoMPIDAttribution) -> ControlFlow<()> {
        let order = (m.order_reference_number(), is_buy(&m.buy_sell_indicator()), m.shares());
        self.add(("A", header!(m), order, m.stock().as_str(), m.price().into_u32()))
    }
    fn on_add_order_with_mpid_attribution(&mut self, m: &theirs::AddOrderWithMPIDAttribution) -> ControlFlow<()> {
        let order = (m.order_reference_number(), is_buy(&m.buy_sell_indicator()), m.shares());
        self.add(("F", header!(m), order, m.stock().as_str(), m.price().into_u32()))
    }
    fn on_order_executed(&mut self, m: &theirs::OrderExecuted) -> ControlFlow<()> {
        self.add((
            "E",
            header!(m),
            m.order_reference_number(),
            m.executed_shares(),
            m.match_number(),
        ))
    }
    fn on_order_executed_with_price(&mut self, m: &theirs::OrderExecutedWithPrice) -> ControlFlow<()> {
        let printable = matches!(m.printable(), theirs::Printable::Printable);
        let trade = (
            m.executed_shares(),
            m.match_number(),
            printable,
            m.execution_price().into_u32(),
        );
        self.add(("C", header!(m), m.order_reference_number(), trade))
    }
    fn on_order_cancel(&mut self, m: &theirs::OrderCancel) -> ControlFlow<()> {
        self.add(("X", header!(m), m.order_reference_number(), m.cancelled_shares()))
    }
    fn on_order_delete(&mut self, m: &theirs::OrderDelete) -> ControlFlow<()> {
        self.add(("D", header!(m), m.order_reference_number()))
    }
    fn on_order_replace(&mut self, m: &theirs::OrderReplace) -> ControlFlow<()> {
        let numbers = (m.original_order_reference_number(), m.new_order_reference_number());
        self.add(("U", header!(m), numbers, m.shares(), m.price().into_u32()))
    }
    fn on_trade(&mut self, m: &theirs::Trade) -> ControlFlow<()> {
        let trade = (
            m.order_reference_number(),
            is_buy(&m.buy_sell_indicator()),
            m.shares(),
            m.match_number(),
        );
        self.add(("P", header!(m), trade, m.stock().as_str(), m.price().into_u32()))
    }
}

/// The same of a message of ours.
fn add_ours(fields: &mut Fields, message: &Message<'_>) {
    let header = message.header();
    let header = (
        header.stock_locate.get(),
        header.tracking_number.get(),
        header.time_ns(),
    );
    let stock = message
        .stock()
        .map(|stock| String::from_utf8_lossy(&stock.0).into_owned());
    let stock = stock.as_deref().unwrap_or_default();
    let add = |m: &proto::itch::AddOrder| (m.reference.get(), m.buy_sell == BuySell::Buy, m.shares.get());
    let _ = match message {
        Message::SystemEvent(m) => fields.add(("S", header, m.event == SystemEvent::START_OF_MARKET_HOURS)),
        Message::StockDirectory(m) => {
            let only = m.round_lots_only == b'Y';
            fields.add((
                "R",
                header,
                stock,
                m.round_lot_size.get(),
                only,
                m.etp_leverage_factor.get(),
            ))
        }
        Message::AddOrder(m) => fields.add(("A", header, add(m), stock, m.price_e4.get())),
        Message::AddOrderAttributed(m) => fields.add(("F", header, add(&m.order), stock, m.order.price_e4.get())),
        Message::OrderExecuted(m) => fields.add(("E", header, m.reference.get(), m.shares.get(), m.match_number.get())),
        Message::OrderExecutedWithPrice(m) => {
            let e = &m.executed;
            let trade = (e.shares.get(), e.match_number.get(), m.is_printable(), m.price_e4.get());
            fields.add(("C", header, e.reference.get(), trade))
        }
        Message::OrderCancel(m) => fields.add(("X", header, m.reference.get(), m.shares.get())),
        Message::OrderDelete(m) => fields.add(("D", header, m.reference.get())),
        Message::OrderReplace(m) => {
            let numbers = (m.original.get(), m.reference.get());
            fields.add(("U", header, numbers, m.shares.get(), m.price_e4.get()))
        }
        Message::Trade(m) => {
            let trade = (
                m.reference.get(),
                m.buy_sell == BuySell::Buy,
                m.shares.get(),
                m.match_number.get(),
            );
            fields.add(("P", header, trade, stock, m.price_e4.get()))
        }
        other => panic!("not in the sample: {other:?}"),
    };
}

#[test]
fn itch5_reads_the_same_fields() {
    let bytes = sample::generate(3, 20_000);
    let (mut ours, mut theirs) = (Fields::default(), Fields::default());
    let mut file = BinaryFile::new(bytes.as_slice(), "sample");
    while let Some(message) = file.next_message().expect("message") {
        add_ours(&mut ours, &parse(message).expect("valid"));
    }
    // The crate does not know the length 0 that ends a session.
    let messages = bytes.strip_suffix(&[0, 0]).expect("end of session");
    Parser::new(messages).parse_stream(&mut theirs).expect("valid");
    assert_eq!(ours.0.len(), theirs.0.len());
    for (ours, theirs) in ours.0.iter().zip(&theirs.0) {
        assert_eq!(ours, theirs);
    }
}
