//! Whether a config has what the first stage needs: for the self-match prevention of its sessions, and for the order types
//! that venues lack; and whom venues that decrement take for one owner.

use crate::config::{ConfigError, OrdersConfig, SelfMatch, SessionConfig};
use crate::own::Reach;
use crate::state::Orders;
use types::VenueId;

impl Orders {
    /// Whoever may have to wait has a time and a place to do so, and whoever leaves it to venues that decrement goes to no
    /// other.
    pub(crate) fn check_modes(&self, config: &OrdersConfig) -> Result<(), ConfigError> {
        for (id, venue) in (0..).map(VenueId).zip(&config.venues) {
            let has_time = config.peg_interval.0 > 0 || !venue.types.emulates_pegs();
            if venue.types.is_any_emulated() && !(config.capacity.held_orders > 0 && has_time) {
                return Err(ConfigError::NoHolding(id));
            }
        }
        let crosses = !config.crossing.instruments.is_empty();
        if crosses && (config.crossing.rest.0 == 0 || config.capacity.held_orders == 0) {
            return Err(ConfigError::NoCrossing);
        }
        let can_wait = config.own_cancel_wait.0 > 0 && config.capacity.waiting_orders > 0;
        for session in &config.sessions {
            match session.self_match {
                SelfMatch::CancelNewest | SelfMatch::CancelBoth => {}
                SelfMatch::CancelOldest if can_wait => {}
                SelfMatch::CancelOldest => return Err(ConfigError::NoWaiting(session.id)),
                SelfMatch::Decrement => self.check_decrement(config, session)?,
            }
        }
        Ok(())
    }

    /// Whether its venue decrements an order of this account with every own order that it meets there. A venue knows an owner
    /// by the account, so with those of other accounts it would trade.
    #[cold]
    pub(crate) fn is_decremented(&self, reach: Reach, account: u32, venue: VenueId) -> bool {
        let mut next = self.own.first(reach);
        while let Some(slot) = next {
            next = self.own.after(reach, slot);
            let own = self.table.order(slot);
            if own.venue == venue && own.account != account {
                return false;
            }
        }
        true
    }

    /// Wherever an order of the session may go, two of one owner lose what they would have traded.
    fn check_decrement(&self, config: &OrdersConfig, session: &SessionConfig) -> Result<(), ConfigError> {
        let lacks = |venue: &VenueId| !config.venues[usize::from(venue.0)].decrements;
        let index = self.session(session.id);
        let of_session = index.and_then(|index| self.sessions[index as usize].route);
        for &account in &session.accounts {
            let of_account = self.any_account(account).and_then(|index| self.accounts[index].route);
            let lacking = match of_session.or(of_account) {
                Some(venue) => Some(venue).filter(lacks),
                None => self.instruments.iter().map(|instrument| instrument.venue).find(lacks),
            };
            if let Some(venue) = lacking {
                return Err(ConfigError::NoDecrement(session.id, venue));
            }
        }
        Ok(())
    }
}
