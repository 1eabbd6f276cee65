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
    /// How an order is to be worked, codes separated by spaces.
    EXEC_INST = 18;
    /// ExecID of a report that is corrected.
    EXEC_REF_ID = 19;
    /// Before FIX 4.3: whether a report is new, cancels, corrects or tells a status.
    EXEC_TRANS_TYPE = 20;
    /// How an order is handled; automatically without a broker.
    HANDL_INST = 21;
    /// Whether this fill was brought about by the broker between its own clients.
    LAST_CAPACITY = 29;
    /// Market of this fill.
    LAST_MKT = 30;
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
    /// Who within the sender.
    SENDER_SUB_ID = 50;
    /// When the message was sent.
    SENDING_TIME = 52;
    /// Side of an order.
    SIDE = 54;
    /// Symbol of an instrument.
    SYMBOL = 55;
    /// Receiver.
    TARGET_COMP_ID = 56;
    /// Who within the receiver.
    TARGET_SUB_ID = 57;
    /// For people.
    TEXT = 58;
    /// How long an order lives.
    TIME_IN_FORCE = 59;
    /// When the order or event was made.
    TRANSACT_TIME = 60;
    /// Bytes of any kind.
    RAW_DATA = 96;
    /// Y: this message may have been sent before under another sequence number.
    POSS_RESEND = 97;
    /// 0 is none, the only one supported.
    ENCRYPT_METHOD = 98;
    /// Price that triggers a stop order.
    STOP_PX = 99;
    /// Why a cancel or replace was refused.
    CXL_REJ_REASON = 102;
    /// Why an order was refused.
    ORD_REJ_REASON = 103;
    /// Heartbeat interval, seconds.
    HEART_BT_INT = 108;
    /// Least quantity of an execution.
    MIN_QTY = 110;
    /// Before FIX 5.0: quantity that an iceberg order shows.
    MAX_FLOOR = 111;
    /// Id of a test request; its heartbeat has the same.
    TEST_REQ_ID = 112;
    /// Of a short sale: Y: whoever takes the order has to locate what is sold; N: it is located.
    LOCATE_REQD = 114;
    /// The firm that a message is sent for, when a third party sends it.
    ON_BEHALF_OF_COMP_ID = 115;
    /// Who within that firm.
    ON_BEHALF_OF_SUB_ID = 116;
    /// SendingTime of the first transmission.
    ORIG_SENDING_TIME = 122;
    /// Y: gap fill; N: reset.
    GAP_FILL_FLAG = 123;
    /// When an order expires.
    EXPIRE_TIME = 126;
    /// Quantity as an amount of money.
    CASH_ORDER_QTY = 152;
    /// When an order begins to live.
    EFFECTIVE_TIME = 168;
    /// What the discretion of an order is relative to.
    DISCRETION_INST = 388;
    /// How far an order may go past its price.
    DISCRETION_OFFSET_VALUE = 389;
    /// What a price means.
    PRICE_TYPE = 423;
    /// What a quantity means.
    QTY_TYPE = 854;
    /// Whether this fill's order rested.
    LAST_LIQUIDITY_IND = 851;
    /// The firm that a message is for, when a third party receives it.
    DELIVER_TO_COMP_ID = 128;
    /// Who within that firm.
    DELIVER_TO_SUB_ID = 129;
    /// Y: both ends start again at 1.
    RESET_SEQ_NUM_FLAG = 141;
    /// Where the firm is that a message is sent for.
    ON_BEHALF_OF_LOCATION_ID = 144;
    /// Where the firm is that a message is for.
    DELIVER_TO_LOCATION_ID = 145;
    /// What an execution report tells.
    EXEC_TYPE = 150;
    /// Quantity still open.
    LEAVES_QTY = 151;
    /// Quantity that is shown to others.
    MAX_SHOW = 210;
    /// Offset of a pegged order's price.
    PEG_OFFSET_VALUE = 211;
    /// Tag that a reject is about.
    REF_TAG_ID = 371;
    /// Type of the message that is refused.
    REF_MSG_TYPE = 372;
    /// Why a message broke a session rule.
    SESSION_REJECT_REASON = 373;
    /// Why an order was cancelled or changed unasked.
    EXEC_RESTATEMENT_REASON = 378;
    /// Id of the application message that is refused.
    BUSINESS_REJECT_REF_ID = 379;
    /// Why an application message was refused.
    BUSINESS_REJECT_REASON = 380;
    /// The day that an order expires at the end of.
    EXPIRE_DATE = 432;
    /// Whether a cancel (1) or a replace (2) is refused.
    CXL_REJ_RESPONSE_TO = 434;
    /// What a mass cancel request is about.
    MASS_CANCEL_REQUEST_TYPE = 530;
    /// What a mass cancel did; 0 when it was refused.
    MASS_CANCEL_RESPONSE = 531;
    /// Why a mass cancel was refused.
    MASS_CANCEL_REJECT_REASON = 532;
    /// How many orders a mass cancel ends.
    TOTAL_AFFECTED_ORDERS = 533;
    /// User of a Logon.
    USERNAME = 553;
    /// Password of a Logon. Never in a log.
    PASSWORD = 554;
    /// Id of a mass status request.
    MASS_STATUS_REQ_ID = 584;
    /// What a mass status request is about.
    MASS_STATUS_REQ_TYPE = 585;
    /// In a Logon: the number that its sender expects next.
    NEXT_EXPECTED_MSG_SEQ_NUM = 789;
    /// Id of a status request.
    ORD_STATUS_REQ_ID = 790;
    /// Y: a drop copy.
    COPY_MSG_INDICATOR = 797;
    /// What an offset of a pegged order is counted in.
    PEG_OFFSET_TYPE = 836;
    /// How many reports answer a status request.
    TOT_NUM_REPORTS = 911;
    /// Y: the last of them.
    LAST_RPT_REQUESTED = 912;
    /// What a pegged order follows.
    PEG_PRICE_TYPE = 1094;
    /// Version of the application message, over FIXT.1.1.
    APPL_VER_ID = 1128;
    /// In a Logon over FIXT.1.1: version of the messages that do not name theirs.
    DEFAULT_APPL_VER_ID = 1137;
    /// Since FIX 5.0: quantity that an iceberg order shows.
    DISPLAY_QTY = 1138;
    /// Since FIX 5.0 SP1: number of the report that answers a mass cancel.
    MASS_ACTION_REPORT_ID = 1369;
    /// Orders with the same id do not trade with each other.
    SELF_MATCH_PREVENTION_ID = 2362;
    /// Which of two such orders is cancelled: 1 the newer, 2 the older, 3 both.
    SELF_MATCH_PREVENTION_INSTRUCTION = 2964;
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
            | 370
            | 627
            | 628
            | 629
            | 630
            | 1128
            | 1129
            | 1156
    )
}

/// The lowest tag that [`data_field`] knows. Most tags of an order are below it.
pub(super) const FIRST_DATA_LENGTH: u32 = 90;

/// The data field whose length this tag gives. Only a data field may hold the delimiter.
#[inline]
#[must_use]
pub const fn data_field(length_tag: u32) -> Option<u32> {
    match length_tag {
        90 | 95 | 212 | 348 | 350 | 352 | 354 | 356 | 358 | 360 | 362 | 364 | 445 | 618 | 621 => Some(length_tag + 1),
        // Signature (89) stands before SignatureLength (93) in number only.
        93 => Some(89),
        _ => None,
    }
}
