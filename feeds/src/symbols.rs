//! Which messages of a feed are about the instruments wanted.

use proto::itch::{Message, Stock};
use types::Symbol;

/// Passes the messages about some symbols, and those about the market as a whole.
pub struct SymbolFilter {
    symbols: Vec<Symbol>,
    /// Of each symbol, whether the feed has it.
    found: Vec<bool>,
    /// By stock locate.
    verdicts: Vec<Verdict>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// No message named the symbol yet.
    Unknown,
    Wanted,
    Unwanted,
}

impl SymbolFilter {
    /// A filter for these symbols.
    #[must_use]
    pub fn new(symbols: &[Symbol]) -> Self {
        let mut symbols = symbols.to_vec();
        symbols.sort_unstable();
        symbols.dedup();
        Self {
            found: vec![false; symbols.len()],
            symbols,
            verdicts: vec![Verdict::Unknown; 1 << 16],
        }
    }

    /// Whether a message passes. Ask for each, in order: those that name a symbol decide for those that follow.
    pub fn passes(&mut self, message: &Message<'_>) -> bool {
        let locate = usize::from(message.header().stock_locate.get());
        if locate == 0 {
            return true;
        }
        let directory = matches!(message, Message::StockDirectory(_));
        if (directory || self.verdicts[locate] == Verdict::Unknown)
            && let Some(stock) = message.stock()
        {
            self.verdicts[locate] = self.judge(stock);
        }
        self.verdicts[locate] == Verdict::Wanted
    }

    /// Symbols that no message named so far.
    pub fn missing(&self) -> impl Iterator<Item = Symbol> {
        let missing = self.symbols.iter().zip(&self.found).filter(|&(_, &found)| !found);
        missing.map(|(&symbol, _)| symbol)
    }

    fn judge(&mut self, stock: Stock) -> Verdict {
        match stock
            .symbol()
            .and_then(|symbol| self.symbols.binary_search(&symbol).ok())
        {
            Some(index) => {
                self.found[index] = true;
                Verdict::Wanted
            }
            None => Verdict::Unwanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::itch::{AddOrder, BuySell, OrderDelete, Stamp, StockDirectory, SystemEvent, parse};
    use zerocopy::{Immutable, IntoBytes};

    fn stamp(stock_locate: u16) -> Stamp {
        Stamp {
            stock_locate,
            time_ns: 1,
        }
    }

    fn passes(filter: &mut SymbolFilter, message: &(impl IntoBytes + Immutable)) -> bool {
        filter.passes(&parse(message.as_bytes()).expect("message"))
    }

    #[test]
    fn messages_pass_by_the_symbol_of_their_locate() {
        let symbol = |text: &str| Symbol::new(text.as_bytes()).expect("symbol");
        let mut filter = SymbolFilter::new(&[symbol("BBB"), symbol("ZZZ"), symbol("BBB")]);
        let stock = |text: &str| Stock::new(&symbol(text)).expect("stock");
        assert!(passes(&mut filter, &SystemEvent::new(1, b'O')));
        assert!(!passes(&mut filter, &OrderDelete::new(stamp(2), 1)), "not named yet");
        assert!(!passes(
            &mut filter,
            &StockDirectory::new(stamp(1), stock("AAA"), 100, false)
        ));
        assert!(passes(
            &mut filter,
            &StockDirectory::new(stamp(2), stock("BBB"), 100, false)
        ));
        assert!(!passes(&mut filter, &OrderDelete::new(stamp(1), 1)));
        assert!(passes(&mut filter, &OrderDelete::new(stamp(2), 1)));
        assert_eq!(filter.missing().collect::<Vec<_>>(), [symbol("ZZZ")]);
        let add = AddOrder::new(stamp(3), 1, BuySell::Buy, 1, stock("ZZZ"), 1);
        assert!(passes(&mut filter, &add), "an order names its symbol too");
        assert_eq!(filter.missing().count(), 0);
    }
}
