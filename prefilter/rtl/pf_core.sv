// Frames in, eight bytes a beat; a verdict for each; frames that pass out on one side, refused ones out on the other.
//
// Four frames are under way at most: between its first beat and the last beat of it that has left. A frame is taken only
// when there is a place for it, and then as fast as it comes. Of a frame that is too long the first 48 bytes are kept, so
// nothing can overflow.
module pf_core #(
    parameter SYMBOLS_LOG2 = 7,
    parameter SESSIONS_LOG2 = 7,
    parameter STREAM_LOG2 = 6,
    parameter RINGS = 0
) (
    input  logic        clk,
    input  logic        reset,
    // Registers.
    input  logic        write,
    input  logic [11:0] write_address,
    input  logic [31:0] write_data,
    input  logic [11:0] read_address,
    output logic [31:0] read_data,
    // Frames in. Time, post-only and number count with the first beat; `s_bad_length` with the last: the frame is not as
    // long as its slot says.
    input  logic        s_valid,
    output logic        s_ready,
    input  logic [63:0] s_data,
    input  logic [7:0]  s_keep,
    input  logic        s_last,
    input  logic        s_bad_length,
    input  logic [63:0] s_now,
    input  logic        s_post_only,
    input  logic [31:0] s_sequence,
    // Frames that passed.
    output logic        m_valid,
    input  logic        m_ready,
    // Frames that were refused; their verdicts are among the others, in order.
    output logic        r_valid,
    input  logic        r_ready,
    // Both.
    output logic [63:0] out_data,
    output logic [7:0]  out_keep,
    output logic        out_last,
    // Verdicts.
    output logic        v_valid,
    input  logic        v_ready,
    output logic [127:0] v_data
);
    localparam SLOTS_LOG2 = 2;
    localparam SLOTS = 1 << SLOTS_LOG2;

    logic ready, open, kill, bank, swap_allowed;
    logic [31:0] generation;
    logic symbol_write, session_write, touch_write, clearing;
    logic [SYMBOLS_LOG2:0] symbol_address, touch_address;
    logic [SESSIONS_LOG2:0] session_address;
    logic [SESSIONS_LOG2-1:0] clear_address;
    logic [167:0] symbol_data;
    logic [79:0] session_data;
    logic [63:0] touch_data;
`ifdef FORMAL
    logic f_in_end, f_in_check, f_end_open, f_frame_open;
    logic [8:0] f_check_reasons;
    logic [SLOTS_LOG2-1:0] f_frame_slot, f_end_slot, f_check_slot;
`endif
    logic judged;
    logic [8:0] reasons;
    logic [2:0] action;
    logic [7:0] route;
    logic [31:0] verdict_sequence, verdict_generation;
    logic [SLOTS_LOG2-1:0] verdict_slot;

    pf_registers #(.SYMBOLS_LOG2(SYMBOLS_LOG2), .SESSIONS_LOG2(SESSIONS_LOG2), .STREAM_LOG2(STREAM_LOG2),
        .RINGS(RINGS)) registers (
        .clk(clk), .reset(reset), .write(write), .write_address(write_address), .write_data(write_data),
        .read_address(read_address), .read_data(read_data), .ready(ready), .open(open), .kill(kill), .bank(bank),
        .generation(generation), .may_swap(swap_allowed), .symbol_write(symbol_write), .symbol_address(symbol_address),
        .symbol_data(symbol_data), .session_write(session_write), .session_address(session_address),
        .session_data(session_data), .touch_write(touch_write), .touch_address(touch_address), .touch_data(touch_data),
        .clearing(clearing), .clear_address(clear_address), .judged(judged), .reasons(reasons));

    // What comes in.
    logic beat, midway, is_full, just_began;
    logic [2:0] index;
    // Frames begun, frames that came to their end, verdicts gone, frames gone; one bit more than a slot's number.
    logic [SLOTS_LOG2:0] begun, taken, told, left;
    logic short_beat;                         // a beat before the last was not full
    logic wrong_length;
    // How many places are taken; never more than there are, so the highest bit says that all are.
    logic [SLOTS_LOG2:0] told_behind, left_behind;
    assign told_behind = begun - told;
    assign left_behind = begun - left;
    // `is_full` is a clock late, so a frame of one beat keeps the next one waiting for a clock.
    assign s_ready = ready && (midway || !(is_full || just_began));
    assign beat = s_valid && s_ready;
    assign wrong_length = index != 5 || s_keep != 8'hFF || short_beat || s_bad_length;
    // `midway` after this clock.
    assign swap_allowed = beat ? s_last : !midway;

    always_ff @(posedge clk) begin
        is_full <= told_behind[SLOTS_LOG2] || left_behind[SLOTS_LOG2];
        just_began <= beat && !midway;
        if (beat && !midway) begun <= begun + 1;
        if (beat) begin
            midway <= !s_last;
            index <= s_last ? 3'd0 : index == 7 ? 3'd7 : index + 3'd1;
            short_beat <= !s_last && (short_beat || s_keep != 8'hFF);
            if (s_last) taken <= taken + 1;
        end
        if (reset) begin
            midway <= 0;
            index <= 0;
            short_beat <= 0;
            is_full <= 0;
            just_began <= 0;
            begun <= 0;
            taken <= 0;
        end
    end

    pf_judge #(.SYMBOLS_LOG2(SYMBOLS_LOG2), .SESSIONS_LOG2(SESSIONS_LOG2), .SLOTS_LOG2(SLOTS_LOG2)) judge (
        .clk(clk), .reset(reset), .beat(beat), .index(index), .data(s_data), .last(s_last), .wrong_length(wrong_length),
        .now(s_now), .post_only(s_post_only), .sequence_number(s_sequence), .slot(taken[SLOTS_LOG2-1:0]), .open(open),
        .kill(kill), .bank(bank), .generation(generation), .symbol_write(symbol_write), .symbol_address(symbol_address),
        .symbol_data(symbol_data), .session_write(session_write), .session_address(session_address),
        .session_data(session_data), .touch_write(touch_write), .touch_address(touch_address), .touch_data(touch_data),
        .clearing(clearing), .clear_address(clear_address), .judged(judged), .reasons(reasons), .action(action),
        .route(route), .verdict_sequence(verdict_sequence), .verdict_generation(verdict_generation),
        .verdict_slot(verdict_slot)
`ifdef FORMAL
        , .f_ended(f_in_end), .f_checked(f_in_check), .f_end_open(f_end_open), .f_frame_open(f_frame_open),
        .f_check_reasons(f_check_reasons), .f_frame_slot(f_frame_slot), .f_end_slot(f_end_slot),
        .f_check_slot(f_check_slot)
`endif
        );

    // Verdicts wait here, by slot, until the host and the frame have had them.
    logic [SLOTS_LOG2:0] known;   // verdicts given
    logic [83:0] verdicts [0:SLOTS-1];
    logic [SLOTS-1:0] refuse;
    // A new verdict is shown at once when none waits before it.
    logic [83:0] fresh, verdict;
    logic waits;
    assign fresh = {route, action, reasons, verdict_generation, verdict_sequence};
    assign waits = told != known;
    assign verdict = waits ? verdicts[told[SLOTS_LOG2-1:0]] : fresh;
    assign v_valid = waits || judged;
    always_ff @(posedge clk) begin
        if (judged) begin
            verdicts[verdict_slot] <= fresh;
            refuse[verdict_slot] <= action[0];
            known <= known + 1;
        end
        if (v_valid && v_ready) told <= told + 1;
        if (reset) begin
            known <= 0;
            told <= 0;
        end
    end
    // Phase and reserved bytes, route, action, reasons, generation, number.
    assign v_data = {32'd0, verdict[83:76], 5'd0, verdict[75:73], 7'd0, verdict[72:64], verdict[63:0]};

    // Frames wait here: six beats in the room of eight. A sixth beat is the last that leaves, whatever came behind it.
    logic [2:0] last_index [0:SLOTS-1];
    logic [7:0] last_keep [0:SLOTS-1];
    always_ff @(posedge clk) if (beat && s_last) begin
        last_index[taken[SLOTS_LOG2-1:0]] <= index > 5 ? 3'd5 : index;
        last_keep[taken[SLOTS_LOG2-1:0]] <= index > 5 ? 8'hFF : s_keep;
    end
    // The beat `at` of the frame `fetched` is fetched once that has its verdict, at the soonest with the clock that brings it;
    // then it is held until the output is free.
    logic [2:0] at;
    logic [SLOTS_LOG2:0] fetched;
    logic fetch, fetch_last, held, held_last, held_refuse, advance;
    logic [7:0] held_keep;
    logic [63:0] held_data;
    pf_ram #(.WIDTH(64), .DEPTH_LOG2(SLOTS_LOG2 + 3)) frames (
        .clk(clk), .write(beat && index < 6), .write_address({taken[SLOTS_LOG2-1:0], index}), .write_data(s_data),
        .read(fetch), .read_address({fetched[SLOTS_LOG2-1:0], at}), .read_data(held_data));
    assign advance = held && (!(m_valid || r_valid) || (m_valid && m_ready) || (r_valid && r_ready));
    assign fetch = (judged || fetched != known) && (!held || advance);
    assign fetch_last = at == last_index[fetched[SLOTS_LOG2-1:0]];
    always_ff @(posedge clk) begin
        if (advance) held <= 0;
        if (fetch) begin
            held <= 1;
            held_last <= fetch_last;
            held_keep <= fetch_last ? last_keep[fetched[SLOTS_LOG2-1:0]] : 8'hFF;
            held_refuse <= fetched == known ? action[0] : refuse[fetched[SLOTS_LOG2-1:0]];
            at <= fetch_last ? 3'd0 : at + 3'd1;
            if (fetch_last) fetched <= fetched + 1;
        end
        if (m_valid && m_ready) m_valid <= 0;
        if (r_valid && r_ready) r_valid <= 0;
        if (advance) begin
            m_valid <= !held_refuse;
            r_valid <= held_refuse;
            out_data <= held_data;
            out_keep <= held_keep;
            out_last <= held_last;
            if (held_last) left <= left + 1;
        end
        if (reset) begin
            m_valid <= 0;
            r_valid <= 0;
            held <= 0;
            at <= 0;
            fetched <= 0;
            left <= 0;
        end
    end

`ifdef FORMAL
    `include "pf_formal.sv"
`endif
endmodule
