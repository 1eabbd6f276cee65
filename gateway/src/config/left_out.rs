//! Which limits a config leaves out, and whether it leaves order types to venues, so that whoever starts a gateway sees it.

use super::Config;
use orders::{AccountLimits, AuctionLimits, InstrumentLimits, SessionLimits, ShortSales};

/// A limit that the config leaves out for some.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// In words.
    pub limit: &'static str,
    /// For how many it is left out; not 0.
    pub count: usize,
    /// How many there are.
    pub of: usize,
    /// Of what.
    pub whose: &'static str,
}

/// A limit in words, and whether it is left out.
type Test<L> = (&'static str, fn(&L) -> bool);

impl Config {
    /// The limits that may be left out, and are.
    #[must_use]
    pub fn limits_left_out(&self) -> Vec<LeftOut> {
        // All shards have the same accounts, sessions and classes.
        let Some(orders) = self.orders.first() else {
            return Vec::new();
        };
        let mut all = Vec::new();
        let accounts: Vec<_> = orders.accounts.iter().map(|account| &account.limits).collect();
        let of_accounts: [Test<AccountLimits>; 6] = [
            ("position limit", |limits| {
                limits.max_position.is_none() && (limits.max_long.is_none() || limits.max_short.is_none())
            }),
            ("gross position limit", |limits| limits.max_gross.is_none()),
            ("net position limit", |limits| limits.max_net.is_none()),
            ("loss limit", |limits| limits.max_loss.is_none()),
            ("short sales", |limits| limits.short_sales == ShortSales::Never),
            ("rate limit", |limits| limits.rate.per_second.is_none()),
        ];
        for (limit, is_left_out) in of_accounts {
            let count = accounts.iter().filter(|limits| is_left_out(limits)).count();
            all.push((limit, count, accounts.len(), "accounts"));
        }
        let sessions: Vec<_> = orders.sessions.iter().map(|session| &session.limits).collect();
        let of_sessions: [Test<SessionLimits>; 4] = [
            ("rate limit", |limits| limits.rate.per_second.is_none()),
            ("limit of repeated orders", |limits| limits.repeats.orders.is_none()),
            ("limit of open notional", |limits| limits.max_open_notional.is_none()),
            ("limit of one order's size", |limits| {
                limits.max_quantity.is_none() || limits.max_notional.is_none()
            }),
        ];
        for (limit, is_left_out) in of_sessions {
            let count = sessions.iter().filter(|limits| is_left_out(limits)).count();
            all.push((limit, count, sessions.len(), "sessions"));
        }
        let of_classes: [Test<InstrumentLimits>; 7] = [
            ("collar", |limits| limits.collar.is_none()),
            ("limit by the book", |limits| limits.book.is_none()),
            ("rate limit", |limits| limits.rate.per_second.is_none()),
            ("limit of open orders", |limits| limits.max_open_orders.is_none()),
            ("limit of open notional", |limits| limits.max_open_notional.is_none()),
            ("position limit", |limits| {
                limits.max_position.is_none() && (limits.max_long.is_none() || limits.max_short.is_none())
            }),
            ("limits of auctions", |limits| limits.auction == AuctionLimits::NONE),
        ];
        for (limit, is_left_out) in of_classes {
            let count = orders.classes.iter().filter(|limits| is_left_out(limits)).count();
            all.push((limit, count, orders.classes.len(), "limit classes"));
        }
        let unstated = self.venues.iter().filter(|venue| !venue.states_order_types).count();
        all.push((
            "word on order types, the venue has all",
            unstated,
            self.venues.len(),
            "venues",
        ));
        let firm = [
            (
                "limit of one order's size",
                orders.firm.max_quantity.is_none() || orders.firm.max_notional.is_none(),
            ),
            ("limit of open notional", orders.firm.max_open_notional.is_none()),
            ("limit of open orders", orders.firm.max_open_orders.is_none()),
            ("gross position limit", orders.firm.max_gross.is_none()),
            ("net position limit", orders.firm.max_net.is_none()),
            ("loss limit", orders.firm.max_loss.is_none()),
            ("rate limit", orders.firm.rate.per_second.is_none()),
        ];
        for (limit, is_left_out) in firm {
            all.push((limit, usize::from(is_left_out), 1, "firm"));
        }
        all.into_iter()
            .filter(|&(_, count, ..)| count > 0)
            .map(|(limit, count, of, whose)| LeftOut {
                limit,
                count,
                of,
                whose,
            })
            .collect()
    }
}
