//! Where the values of a message are kept: a slot for each tag that the gateway or its client has a use for.
//!
//! A tag finds its slot by a table: a `match` over so many sparse numbers costs an indirect jump a field, which is more
//! than everything else that is done with it.

use super::tag;

/// The tags that have a slot, in the order of their slots.
pub(super) const TAGS: [u32; SLOTS] = [
    // The header.
    tag::BEGIN_STRING,
    tag::MSG_SEQ_NUM,
    tag::MSG_TYPE,
    tag::POSS_DUP_FLAG,
    tag::SENDER_COMP_ID,
    tag::SENDER_SUB_ID,
    tag::SENDING_TIME,
    tag::TARGET_COMP_ID,
    tag::TARGET_SUB_ID,
    tag::POSS_RESEND,
    tag::ON_BEHALF_OF_COMP_ID,
    tag::ON_BEHALF_OF_SUB_ID,
    tag::ORIG_SENDING_TIME,
    tag::DELIVER_TO_COMP_ID,
    tag::DELIVER_TO_SUB_ID,
    tag::ON_BEHALF_OF_LOCATION_ID,
    tag::DELIVER_TO_LOCATION_ID,
    tag::APPL_VER_ID,
    // The session.
    tag::BEGIN_SEQ_NO,
    tag::END_SEQ_NO,
    tag::NEW_SEQ_NO,
    tag::REF_SEQ_NUM,
    tag::RAW_DATA,
    tag::ENCRYPT_METHOD,
    tag::HEART_BT_INT,
    tag::TEST_REQ_ID,
    tag::GAP_FILL_FLAG,
    tag::RESET_SEQ_NUM_FLAG,
    tag::REF_TAG_ID,
    tag::REF_MSG_TYPE,
    tag::SESSION_REJECT_REASON,
    tag::BUSINESS_REJECT_REF_ID,
    tag::BUSINESS_REJECT_REASON,
    tag::USERNAME,
    tag::PASSWORD,
    tag::NEXT_EXPECTED_MSG_SEQ_NUM,
    tag::DEFAULT_APPL_VER_ID,
    // Orders and reports.
    tag::ACCOUNT,
    tag::AVG_PX,
    tag::CL_ORD_ID,
    tag::CUM_QTY,
    tag::EXEC_ID,
    tag::EXEC_INST,
    tag::EXEC_REF_ID,
    tag::EXEC_TRANS_TYPE,
    tag::HANDL_INST,
    tag::LAST_PX,
    tag::LAST_QTY,
    tag::ORDER_ID,
    tag::ORDER_QTY,
    tag::ORD_STATUS,
    tag::ORD_TYPE,
    tag::ORIG_CL_ORD_ID,
    tag::PRICE,
    tag::SIDE,
    tag::SYMBOL,
    tag::TEXT,
    tag::TIME_IN_FORCE,
    tag::TRANSACT_TIME,
    tag::STOP_PX,
    tag::CXL_REJ_REASON,
    tag::ORD_REJ_REASON,
    tag::MIN_QTY,
    tag::MAX_FLOOR,
    tag::LOCATE_REQD,
    tag::EXPIRE_TIME,
    tag::CASH_ORDER_QTY,
    tag::EFFECTIVE_TIME,
    tag::EXEC_TYPE,
    tag::LEAVES_QTY,
    tag::MAX_SHOW,
    tag::PEG_OFFSET_VALUE,
    tag::EXEC_RESTATEMENT_REASON,
    tag::DISCRETION_INST,
    tag::DISCRETION_OFFSET_VALUE,
    tag::PRICE_TYPE,
    tag::EXPIRE_DATE,
    tag::CXL_REJ_RESPONSE_TO,
    tag::MASS_CANCEL_REQUEST_TYPE,
    tag::MASS_CANCEL_RESPONSE,
    tag::MASS_CANCEL_REJECT_REASON,
    tag::TOTAL_AFFECTED_ORDERS,
    tag::MASS_STATUS_REQ_ID,
    tag::MASS_STATUS_REQ_TYPE,
    tag::ORD_STATUS_REQ_ID,
    tag::COPY_MSG_INDICATOR,
    tag::QTY_TYPE,
    tag::PEG_OFFSET_TYPE,
    tag::TOT_NUM_REPORTS,
    tag::LAST_RPT_REQUESTED,
    tag::PEG_PRICE_TYPE,
    tag::DISPLAY_QTY,
    tag::SELF_MATCH_PREVENTION_ID,
    tag::SELF_MATCH_PREVENTION_INSTRUCTION,
    tag::TRIGGER,
];

/// How many slots there are: a bit each in a set of 128.
pub(super) const SLOTS: usize = 95;

const _: () = assert!(SLOTS <= 128, "the set of filled slots has 128 bits");

/// The first slots are of the header's fields.
pub(super) const HEADER_SLOTS: u8 = 18;

/// The slot of a tag, [`HEADER_WITHOUT_SLOT`] or [`NO_SLOT`].
#[inline]
pub(super) const fn slot_of(tag: u32) -> u8 {
    if (tag as usize) < TABLE_LENGTH {
        return TABLE[tag as usize];
    }
    match tag {
        tag::SELF_MATCH_PREVENTION_ID => BEYOND_TABLE[0],
        tag::SELF_MATCH_PREVENTION_INSTRUCTION => BEYOND_TABLE[1],
        tag::TRIGGER => BEYOND_TABLE[2],
        _ => NO_SLOT,
    }
}

/// The slots of some tags, as bits.
pub(super) const fn bits_of(tags: &[u32]) -> SlotSet {
    let mut bits = 0;
    let mut index = 0;
    while index < tags.len() {
        let slot = slot_of(tags[index]);
        assert!((slot as usize) < SLOTS, "a tag without a slot");
        bits |= bit_of(slot);
        index += 1;
    }
    bits
}

/// The bit of a slot. Put together of halves, because a shift of 128 bits by a variable goes through memory.
#[inline(always)]
pub(super) const fn bit_of(slot: u8) -> SlotSet {
    let half = 1_u64 << (slot % 64);
    if slot < 64 {
        half as SlotSet
    } else {
        (half as SlotSet) << 64
    }
}

/// A bit for each slot.
pub(super) type SlotSet = u128;

/// Of a tag that is not kept.
pub(super) const NO_SLOT: u8 = u8::MAX;

/// Of a tag of the header that is not kept.
pub(super) const HEADER_WITHOUT_SLOT: u8 = u8::MAX - 1;

/// One more than the highest tag in the table.
const TABLE_LENGTH: usize = 1_160;

static TABLE: [u8; TABLE_LENGTH] = table();

/// The slots of the tags that are too high for the table, in the order of [`slot_of`].
static BEYOND_TABLE: [u8; 3] = [
    find(tag::SELF_MATCH_PREVENTION_ID),
    find(tag::SELF_MATCH_PREVENTION_INSTRUCTION),
    find(tag::TRIGGER),
];

#[allow(clippy::cast_possible_truncation, reason = "a slot is below 128")]
const fn table() -> [u8; TABLE_LENGTH] {
    let mut table = [NO_SLOT; TABLE_LENGTH];
    let mut tag = 0;
    while tag < TABLE_LENGTH {
        if tag::is_header(tag as u32) {
            table[tag] = HEADER_WITHOUT_SLOT;
        }
        tag += 1;
    }
    let mut slot = 0;
    while slot < SLOTS {
        if (TAGS[slot] as usize) < TABLE_LENGTH {
            table[TAGS[slot] as usize] = slot as u8;
        }
        slot += 1;
    }
    table
}

#[allow(clippy::cast_possible_truncation, reason = "a slot is below 128")]
const fn find(tag: u32) -> u8 {
    let mut slot = 0;
    while TAGS[slot] != tag {
        slot += 1;
    }
    slot as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_finds_its_own_slot() {
        for (slot, &tag) in TAGS.iter().enumerate() {
            assert_eq!(usize::from(slot_of(tag)), slot, "{tag}");
        }
        let kept = (0..100_000).filter(|&tag| slot_of(tag) < HEADER_WITHOUT_SLOT).count();
        assert_eq!(kept, SLOTS, "a tag stands twice");
    }

    #[test]
    fn every_field_of_the_header_is_known_as_one() {
        for tag in 0..100_000 {
            let slot = slot_of(tag);
            let is_header = slot < HEADER_SLOTS || slot == HEADER_WITHOUT_SLOT;
            assert_eq!(is_header, tag::is_header(tag), "{tag}");
        }
    }
}
