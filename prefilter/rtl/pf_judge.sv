// The verdict on one order, from its six beats of eight bytes. It is there three clocks after the last beat, so eight after
// the first. Fields are looked up and compared as they pass; 64-bit comparisons are done in halves that run side by side.
//
// | beat | field                                  | what begins with it          |
// | 0    | header                                 | time, bank and control are kept |
// | 1    | instrument, quantity                   | limits are read              |
// | 2    | price                                  | bounds                       |
// | 3    | client order id                        |                              |
// | 4    | account, session, side, flags          | rate and touch are read      |
// | 5    | trigger                                |                              |
module pf_judge #(
    parameter SYMBOLS_LOG2 = 7,
    parameter SESSIONS_LOG2 = 7,
    parameter SLOTS_LOG2 = 2
) (
    input  logic        clk,
    input  logic        reset,
    // A beat is taken with this clock. What stands beside the data counts with the first beat.
    input  logic        beat,
    input  logic [2:0]  index,          // 7: beyond the sixth
    input  logic [63:0] data,
    input  logic        last,
    input  logic        wrong_length,   // with the last beat
    input  logic [63:0] now,
    input  logic        post_only,
    input  logic [31:0] sequence_number,
    input  logic [SLOTS_LOG2-1:0] slot,
    // Limits and control.
    input  logic        open,
    input  logic        kill,
    input  logic        bank,
    input  logic [31:0] generation,
    input  logic        symbol_write,
    input  logic [SYMBOLS_LOG2:0]  symbol_address,
    input  logic [167:0] symbol_data,
    input  logic        session_write,
    input  logic [SESSIONS_LOG2:0] session_address,
    input  logic [79:0] session_data,
    input  logic        touch_write,
    input  logic [SYMBOLS_LOG2:0]  touch_address,
    input  logic [63:0] touch_data,
    input  logic        clearing,
    input  logic [SESSIONS_LOG2-1:0] clear_address,
    // The verdict.
    output logic        judged,
    output logic [8:0]  reasons,
    output logic [2:0]  action,
    output logic [7:0]  route,
    output logic [31:0] verdict_sequence,
    output logic [31:0] verdict_generation,
    output logic [SLOTS_LOG2-1:0] verdict_slot
`ifdef FORMAL
    // What proofs need to see of the pipeline.
    ,
    output logic        f_ended, f_checked, f_end_open, f_frame_open,
    output logic [8:0]  f_check_reasons,
    output logic [SLOTS_LOG2-1:0] f_frame_slot, f_end_slot, f_check_slot
`endif
);
    localparam LEN = 0, FIELD = 1, KILL = 2, SESSION = 3, SYMBOL = 4, QTY = 5, PRICE = 6, RATE = 7, TOUCH = 8;
    // Block length 40, schema `TG`, version 0; the template stands in bits 16–31.
    localparam [47:0] HEADER = {32'h0000_4754, 16'd40};

    // Beat 0.
    logic is_new, is_cancel, is_replace, is_mass, frame_bank, frame_open, frame_kill, frame_post_only;
    logic [63:0] frame_now;
    logic [31:0] frame_sequence, frame_generation;
    logic [SLOTS_LOG2-1:0] frame_slot;
    logic right_header;
    assign right_header = {data[63:32], data[15:0]} == HEADER;
    // Beat 1.
    logic [31:0] quantity;
    logic [SYMBOLS_LOG2-1:0] symbol;
    logic symbol_beyond, quantity_valid;
    // Beat 2.
    logic [63:0] price;
    logic price_null;
    // Beat 3.
    logic id_valid;
    // Beat 4.
    logic [SESSIONS_LOG2-1:0] session;
    logic session_beyond, side_valid, sell, market, limit, time_in_force_valid;

    always_ff @(posedge clk) if (beat) case (index)
        0: begin
            is_new <= right_header && data[31:16] == 1;
            is_cancel <= right_header && data[31:16] == 2;
            is_replace <= right_header && data[31:16] == 3;
            is_mass <= right_header && data[31:16] == 4;
            frame_now <= now;
            frame_bank <= bank;
            frame_open <= open;
            frame_kill <= kill;
            frame_post_only <= post_only;
            frame_sequence <= sequence_number;
            frame_generation <= generation;
            frame_slot <= slot;
        end
        1: begin
            quantity <= data[63:32];
            quantity_valid <= data[63:32] != 0 && data[63:32] != 32'hFFFF_FFFF;
            symbol <= data[SYMBOLS_LOG2-1:0];
            symbol_beyond <= data[31:SYMBOLS_LOG2] != 0;
        end
        2: begin
            price <= data;
            price_null <= data == 64'h8000_0000_0000_0000;
        end
        3: id_valid <= data != 0;
        4: begin
            session <= data[32 +: SESSIONS_LOG2];
            session_beyond <= data[47:32] >> SESSIONS_LOG2 != 0;
            side_valid <= data[55:48] == 1 || data[55:48] == 2;
            sell <= data[49];
            market <= data[63:60] == 1;
            limit <= data[63:60] == 2;
            time_in_force_valid <= !data[59] && data[58:56] != 5;
        end
        default: ;
    endcase

    logic [167:0] symbol_limits;
    pf_ram #(.WIDTH(168), .DEPTH_LOG2(SYMBOLS_LOG2 + 1)) symbols (
        .clk(clk), .write(symbol_write), .write_address(symbol_address), .write_data(symbol_data),
        .read(1'b1), .read_address({frame_bank, data[SYMBOLS_LOG2-1:0]}), .read_data(symbol_limits));
    logic [79:0] session_limits;
    pf_ram #(.WIDTH(80), .DEPTH_LOG2(SESSIONS_LOG2 + 1)) sessions (
        .clk(clk), .write(session_write), .write_address(session_address), .write_data(session_data),
        .read(1'b1), .read_address({frame_bank, data[32 +: SESSIONS_LOG2]}), .read_data(session_limits));
    logic [63:0] touch;
    pf_ram #(.WIDTH(64), .DEPTH_LOG2(SYMBOLS_LOG2 + 1)) touches (
        .clk(clk), .write(touch_write), .write_address(touch_address), .write_data(touch_data),
        // A sale meets the bid, a purchase the ask.
        .read(1'b1), .read_address({!data[49], symbol}), .read_data(touch));
    logic [63:0] due, next_due;
    logic take;
    pf_ram #(.WIDTH(64), .DEPTH_LOG2(SESSIONS_LOG2)) dues (
        .clk(clk), .write(clearing || take), .write_address(clearing ? clear_address : take_session),
        .write_data(clearing ? 64'd0 : next_due),
        .read(1'b1), .read_address(data[32 +: SESSIONS_LOG2]), .read_data(due));

    // What was read with beats 1 and 4 is kept a clock later.
    logic read_symbol, read_session;
    logic [63:0] lowest, highest, due_kept, touch_kept;
    logic [31:0] max_quantity, interval;
    logic [7:0]  symbol_route;
    logic [47:0] ahead;
    logic no_interval_low, no_interval_high, no_session;
    assign no_session = no_interval_low && no_interval_high;
    always_ff @(posedge clk) begin
        read_symbol <= beat && index == 1;
        read_session <= beat && index == 4;
        if (read_symbol) {symbol_route, max_quantity, highest, lowest} <= symbol_limits;
        if (read_session) begin
            due_kept <= due;
            touch_kept <= touch;
            interval <= session_limits[79:48];
            no_interval_low <= session_limits[63:48] == 0;
            no_interval_high <= session_limits[79:64] == 0;
            ahead <= session_limits[47:0];
        end
    end

    // These follow their operands by a clock, whatever is under way; they are looked at when they have settled.
    logic too_many, no_symbol;
    logic low_hi_lt, low_hi_eq, low_lo_lt, high_hi_gt, high_hi_eq, high_lo_gt;
    logic touch_hi_lt, touch_hi_eq, touch_lo_lt, touch_lo_eq;
    always_ff @(posedge clk) begin
        no_symbol <= max_quantity == 0;
        too_many <= quantity > max_quantity;
        low_hi_lt <= $signed(price[63:32]) < $signed(lowest[63:32]);
        low_hi_eq <= price[63:32] == lowest[63:32];
        low_lo_lt <= price[31:0] < lowest[31:0];
        high_hi_gt <= $signed(price[63:32]) > $signed(highest[63:32]);
        high_hi_eq <= price[63:32] == highest[63:32];
        high_lo_gt <= price[31:0] > highest[31:0];
        touch_hi_lt <= $signed(price[63:32]) < $signed(touch_kept[63:32]);
        touch_hi_eq <= price[63:32] == touch_kept[63:32];
        touch_lo_lt <= price[31:0] < touch_kept[31:0];
        touch_lo_eq <= price[31:0] == touch_kept[31:0];
    end

    // One clock after the last beat.
    logic ended, end_length, end_outside, end_symbol, end_many;
    logic end_new, end_cancel, end_replace, end_mass, end_open, end_kill, end_post_only;
    logic end_id, end_quantity, end_null;
    logic [7:0] end_route;
    logic [31:0] end_sequence, end_generation;
    logic [SLOTS_LOG2-1:0] end_slot;
    always_ff @(posedge clk) begin
        ended <= beat && last && !reset;
        end_length <= wrong_length;
        end_new <= is_new;
        end_cancel <= is_cancel;
        end_replace <= is_replace;
        end_mass <= is_mass;
        end_open <= frame_open;
        end_kill <= frame_kill;
        end_post_only <= frame_post_only;
        end_id <= id_valid;
        end_quantity <= quantity_valid;
        end_null <= price_null;
        end_symbol <= no_symbol || symbol_beyond;
        end_many <= too_many;
        end_outside <= low_hi_lt || (low_hi_eq && low_lo_lt) || high_hi_gt || (high_hi_eq && high_lo_gt);
        end_route <= symbol_route;
        end_sequence <= frame_sequence;
        end_generation <= frame_generation;
        end_slot <= frame_slot;
        // A frame of one beat ends with the beat that brings what is kept of it.
        if (index == 0) begin
            end_open <= open;
            end_sequence <= sequence_number;
            end_generation <= generation;
            end_slot <= slot;
        end
    end

    // Two clocks after it: all but rate and touch.
    logic well_formed, cancel;
    assign well_formed = end_id && (
        (end_new && side_valid && end_quantity && time_in_force_valid && (market ? end_null : limit && !end_null))
        || (end_replace && side_valid && end_quantity && !end_null)
        || (end_cancel && side_valid)
        || end_mass);
    assign cancel = end_cancel || end_mass;

    logic checked, check_rate, check_touch, check_post_only, check_null, check_sell;
    logic [8:0] check_reasons;
    logic check_closed;
    logic [7:0] check_route;
    logic [31:0] check_sequence, check_generation;
    logic [SLOTS_LOG2-1:0] check_slot;
    logic [63:0] check_now, check_due;
    logic later_hi_gt, later_hi_eq, later_lo_gt;
    // An order is too fast when now + ahead - due is below 0. The three are brought down to two numbers, `sum` and twice
    // `majority`, whose halves are added side by side; the upper half for both that may come out of the lower one.
    logic [63:0] sum, majority;
    assign sum = frame_now ^ {16'd0, ahead} ^ ~due_kept;
    assign majority = (frame_now & {16'd0, ahead}) | ((frame_now | {16'd0, ahead}) & ~due_kept);
    logic over_low, over_high, over_high_carried, over_top;
    logic [31:0] low_, high_;
    logic [32:0] high_carried_;
    always_ff @(posedge clk) begin
        checked <= ended && !reset;
        check_reasons <= 0;
        if (end_length) check_reasons[LEN] <= 1;
        else begin
            check_reasons[FIELD] <= !well_formed;
            check_reasons[KILL] <= !end_open || (end_kill && !(well_formed && cancel));
            check_reasons[SESSION] <= no_session || session_beyond;
            if (well_formed && !cancel) begin
                check_reasons[SYMBOL] <= end_symbol;
                check_reasons[QTY] <= !end_symbol && end_many;
                check_reasons[PRICE] <= !end_symbol && end_outside && !end_null;
            end
        end
        check_rate <= !end_length && well_formed && !cancel && !no_session && !session_beyond;
        check_touch <= !end_length && well_formed && !cancel && !end_symbol;
        check_post_only <= end_post_only;
        check_null <= end_null;
        check_sell <= sell;
        check_closed <= !end_open;
        check_route <= !end_length && well_formed && !end_symbol ? end_route : 8'd0;
        check_sequence <= end_sequence;
        check_generation <= end_generation;
        check_slot <= end_slot;
        check_now <= frame_now;
        check_due <= due_kept;
        later_hi_gt <= due_kept[63:32] > frame_now[63:32];
        later_hi_eq <= due_kept[63:32] == frame_now[63:32];
        later_lo_gt <= due_kept[31:0] > frame_now[31:0];
        {over_low, low_} <= {1'b0, sum[31:0]} + {1'b0, majority[30:0], 1'b1};
        {over_high, high_} <= {1'b0, sum[63:32]} + {1'b0, majority[62:31]};
        // With ones below: a chain of its own, that begins with a carry.
        {over_high_carried, high_carried_} <= {1'b0, sum[63:32], 1'b1} + {1'b0, majority[62:31], 1'b1};
        over_top <= majority[63];
    end

    // Three clocks after it: the verdict.
    logic too_fast;
    assign too_fast = check_rate && !over_top && !(over_low ? over_high_carried : over_high);
    logic below_touch, at_touch, marketable, crosses;
    assign below_touch = touch_hi_lt || (touch_hi_eq && touch_lo_lt);
    assign at_touch = touch_hi_eq && touch_lo_eq;
    assign marketable = check_touch && (check_null || (check_sell ? below_touch || at_touch : !below_touch));
    assign crosses = marketable && check_post_only;
    logic charge;
    logic [63:0] base;
    always_ff @(posedge clk) begin
        judged <= checked && !reset;
        reasons <= check_reasons | {crosses, too_fast, 7'd0};
        action <= {check_closed, marketable, check_reasons != 0 || too_fast || crosses};
        route <= check_route;
        verdict_sequence <= check_sequence;
        verdict_generation <= check_generation;
        verdict_slot <= check_slot;
        charge <= checked && check_rate && check_reasons == 0 && !too_fast && !crosses && !reset;
        base <= later_hi_gt || (later_hi_eq && later_lo_gt) ? check_due : check_now;
    end

    // An order that passes takes its time: it is written four clocks after the last beat, and read for the next order of
    // the session five clocks after it at the soonest.
    logic [32:0] next_lo;
    logic [31:0] next_hi;
    logic [SESSIONS_LOG2-1:0] take_session;
    always_ff @(posedge clk) begin
        take <= charge && !reset;
        next_lo <= {1'b0, base[31:0]} + {1'b0, interval};
        next_hi <= base[63:32];
        take_session <= session;
    end
    assign next_due = {next_hi + {31'd0, next_lo[32]}, next_lo[31:0]};

`ifdef FORMAL
    assign f_ended = ended;
    assign f_checked = checked;
    assign f_end_open = end_open;
    assign f_frame_open = frame_open;
    assign f_check_reasons = check_reasons;
    assign f_frame_slot = frame_slot;
    assign f_end_slot = end_slot;
    assign f_check_slot = check_slot;
`endif
endmodule
