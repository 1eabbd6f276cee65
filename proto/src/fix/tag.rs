//! Tag numbers, and what the scan must know of a tag without a dictionary.

macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: u32 = $number;)*
    };
}

tags! {
    /// Trading account.
    ACCOUNT = 1;
    /// Average price of an order's fills.
    AVG_PX = 6;
    /// First sequence number asked for.
    BEGIN_SEQ_NO = 7;
    /// Version; first field of a message.
    BEGIN_STRING = 8;
    /// Bytes from after this field to before the checksum field.
    BODY_LENGTH = 9;
    /// Sum of all bytes before it, modulo 256; last field of a message.
    CHECK_SUM = 10;
    /// The client's id of an order or request.
    CL_ORD_ID = 11;
    /// Quantity traded so far.
    CUM_QTY = 14;
    /// Last sequence number asked for; 0 is all.
    END_SEQ_NO = 16;
    /// Id of an execution report.
    EXEC_ID = 17;
    /// Price of this fill.
    LAST_PX = 31;
    /// Quantity of this fill.
    LAST_QTY = 32;
    /// Sequence number of a message.
    MSG_SEQ_NUM = 34;
    /// Message type; third field of a message.
    MSG_TYPE = 35;
    /// Sequence number that follows a gap or reset.
    NEW_SEQ_NO = 36;
    /// The gateway's id of an order.
    ORDER_ID = 37;
    /// Quantity ordered, in units.
    ORDER_QTY = 38;
    /// State of an order.
    ORD_STATUS = 39;
    /// Type of an order.
    ORD_TYPE = 40;
    /// The ClOrdID that a request refers to.
    ORIG_CL_ORD_ID = 41;
    /// Y: this sequence number may have been sent before.
    POSS_DUP_FLAG = 43;
    /// Limit price.
    PRICE = 44;
    /// Sequence number of the message that is refused.
    REF_SEQ_NUM = 45;
    /// Sender.
    SENDER_COMP_ID = 49;
    /// When the message was sent.
    SENDING_TIME = 52;
    /// Side of an order.
    SIDE = 54;
    /// Symbol of an instrument.
    SYMBOL = 55;
    /// Receiver.
    TARGET_COMP_ID = 56;
    /// For people.
    TEXT = 58;
    /// How long an order lives.
    TIME_IN_FORCE = 59;
    /// When the order or event was made.
    TRANSACT_TIME = 60;
    /// Y: this message may have been sent before under another sequence number.
    POSS_RESEND = 97;
    /// 0 is none, the only one supported.
    ENCRYPT_METHOD = 98;
    /// Why a cancel or replace was refused.
    CXL_REJ_REASON = 102;
    /// Why an order was refused.
    ORD_REJ_REASON = 103;
    /// Heartbeat interval, seconds.
    HEART_BT_INT = 108;
    /// Id of a test request; its heartbeat has the same.
    TEST_REQ_ID = 112;
    /// SendingTime of the first transmission.
    ORIG_SENDING_TIME = 122;
    /// Y: gap fill; N: reset.
    GAP_FILL_FLAG = 123;
    /// Y: both ends start again at 1.
    RESET_SEQ_NUM_FLAG = 141;
    /// What an execution report tells.
    EXEC_TYPE = 150;
    /// Quantity still open.
    LEAVES_QTY = 151;
    /// Tag that a reject is about.
    REF_TAG_ID = 371;
    /// Type of the message that is refused.
    REF_MSG_TYPE = 372;
    /// Why a message broke a session rule.
    SESSION_REJECT_REASON = 373;
    /// Why an application message was refused.
    BUSINESS_REJECT_REASON = 380;
    /// Whether a cancel (1) or a replace (2) is refused.
    CXL_REJ_RESPONSE_TO = 434;
    /// User-defined: the tick that caused an order, as the decimal number of [`types::Trigger`].
    TRIGGER = 9001;
}

/// Whether the tag belongs to the standard header, so that it is out of place once the body has begun
/// (FIX 4.4, volume 2, standard message header).
#[must_use]
pub const fn is_header(tag: u32) -> bool {
    matches!(
        tag,
        8 | 9
            | 34
            | 35
            | 43
            | 49
            | 50
            | 52
            | 56
            | 57
            | 90
            | 91
            | 97
            | 115
            | 116
            | 122
            | 128
            | 129
            | 142
            | 143
            | 144
            | 145
            | 212
            | 213
            | 347
            | 369
            | 627
            | 628
            | 629
            | 630
    )
}

/// The data field whose length this tag gives. Only a data field may hold the delimiter.
#[inline]
#[must_use]
pub const fn data_field(length_tag: u32) -> Option<u32> {
    // Most tags of an order are below the first of these.
    if length_tag < 90 {
        return None;
    }
    match length_tag {
        90 | 95 | 212 | 348 | 350 | 352 | 354 | 356 | 358 | 360 | 362 | 364 | 445 | 618 | 621 => Some(length_tag + 1),
        // Signature (89) stands before SignatureLength (93) in number only.
        93 => Some(89),
        _ => None,
    }
}
