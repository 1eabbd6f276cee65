// What is proved of pf_core, whatever the tables hold and whatever comes in; formal.sh runs it. Included at the end of the
// module. With COVER the asserts give way to one that says that a case never comes, which must be wrong.
`ifdef COVER
`define CLAIM(claim) if (0) begin end
`else
`define CLAIM(claim) assert (claim)
`endif
reg f_past = 0;
always @(posedge clk) f_past <= 1;
always @(*) if (!f_past) assume (reset);

// Occupancy of the four places, by modular counters.
wire [SLOTS_LOG2:0] f_ended = taken - known;      // ended, without a verdict yet
wire [SLOTS_LOG2:0] f_untold = known - told;      // verdicts that wait
wire [SLOTS_LOG2:0] f_unsent = known - left;      // frames that wait or leave
wire [1:0] f_pipeline = {1'b0, f_in_end} + {1'b0, f_in_check} + {1'b0, judged};

// The sender keeps to AXI-Stream: what is offered stays until it is taken.
always @(posedge clk) if (f_past && !$past(reset) && $past(s_valid && !s_ready)) begin
    assume (s_valid && $stable(s_data) && $stable(s_keep) && $stable(s_last));
end

always @(posedge clk) if (f_past && !$past(reset) && !reset) begin
    // Handshake: what is offered stays until it is taken.
    if ($past(m_valid && !m_ready)) `CLAIM(m_valid && $stable(out_data) && $stable(out_keep) && $stable(out_last));
    if ($past(r_valid && !r_ready)) `CLAIM(r_valid && $stable(out_data) && $stable(out_keep) && $stable(out_last));
    if ($past(v_valid && !v_ready)) `CLAIM(v_valid && $stable(v_data));
end

always @(posedge clk) if (f_past && !reset) begin
    // A frame goes out on one side only.
    `CLAIM(!(m_valid && r_valid));
    // Never more frames under way than places, so that none is overwritten; never more verdicts than frames.
    `CLAIM(told_behind <= SLOTS && left_behind <= SLOTS);
    `CLAIM(begun - taken == {2'd0, midway});
    `CLAIM(f_ended <= 3 && f_ended == {1'b0, f_pipeline});
    `CLAIM(f_untold <= SLOTS && f_unsent <= SLOTS);
    `CLAIM(f_untold + f_ended + {2'd0, midway} == told_behind);
    `CLAIM(f_unsent + f_ended + {2'd0, midway} == left_behind);
    // A clock late, `is_full` is not too late: where a frame may begin there is a place.
    if (s_ready && !midway) `CLAIM(!told_behind[SLOTS_LOG2] && !left_behind[SLOTS_LOG2]);
    if (!midway && !just_began && !is_full) `CLAIM(!told_behind[SLOTS_LOG2] && !left_behind[SLOTS_LOG2]);
    if (just_began) `CLAIM(begun != told || begun != left);
    if (!just_began && (told_behind[SLOTS_LOG2] || left_behind[SLOTS_LOG2])) `CLAIM(is_full);
    if (index != 0) `CLAIM(midway);
    `CLAIM(at <= 5);
end

// The verdicts' places, in their order: pipeline stages hold the slots that come next.
wire [SLOTS_LOG2-1:0] f_next = known[SLOTS_LOG2-1:0];
wire [SLOTS_LOG2-1:0] f_second = f_next + {1'b0, judged};
wire [SLOTS_LOG2-1:0] f_third = f_second + {1'b0, f_in_check};
always @(posedge clk) if (f_past && !reset) begin
    if (judged) `CLAIM(verdict_slot == f_next);
    if (f_in_check) `CLAIM(f_check_slot == f_second);
    if (f_in_end) `CLAIM(f_end_slot == f_third);
    if (midway && index != 0) `CLAIM(f_frame_slot == taken[SLOTS_LOG2-1:0]);
end

// No output without a pass: what is on the passing side belongs to a frame whose verdict had no reason. And closed means
// closed: a frame that began while the filter was not open never passes. One slot is watched, whichever.
(* anyconst *) reg [SLOTS_LOG2-1:0] f_slot;
reg f_closed;             // the frame in the watched slot began closed
reg f_passed;             // the last verdict on it had no reason
always @(posedge clk) begin
    if (beat && !midway && taken[SLOTS_LOG2-1:0] == f_slot) f_closed <= !open;
    if (judged && verdict_slot == f_slot) f_passed <= reasons == 0;
end
wire f_watched_waits = f_unsent != 0 && (f_slot - left[SLOTS_LOG2-1:0]) < f_unsent;
reg f_out_slot_valid;
reg [SLOTS_LOG2-1:0] f_out_slot;
reg f_out_passed, f_out_closed;
always @(posedge clk) if (advance && left[SLOTS_LOG2-1:0] == f_slot) begin
    f_out_passed <= f_passed;
    f_out_closed <= f_closed;
end
always @(posedge clk) begin
    if (advance) f_out_slot <= left[SLOTS_LOG2-1:0];
    f_out_slot_valid <= reset ? 1'b0 : f_out_slot_valid || advance;
end
always @(posedge clk) if (f_past && !reset) begin
    if (m_valid || r_valid) `CLAIM(f_out_slot_valid);
    if (m_valid && f_out_slot == f_slot) `CLAIM(f_out_passed && !f_out_closed);
    // What carries that through the pipeline.
    if (f_watched_waits) `CLAIM(refuse[f_slot] == !f_passed && !(f_closed && f_passed));
    if (judged && verdict_slot == f_slot && f_closed) `CLAIM(reasons != 0);
    if (f_in_check && f_check_slot == f_slot && f_closed) `CLAIM(f_check_reasons != 0);
    if (f_in_end && f_end_slot == f_slot && f_closed) `CLAIM(!f_end_open);
    if (midway && index != 0 && f_frame_slot == f_slot && f_closed) `CLAIM(!f_frame_open);
end

`ifdef COVER
// The proofs are not empty.
wire [5:0] f_cases = {
    judged && reasons[0],
    f_closed && judged && verdict_slot == f_slot,
    v_valid && !v_ready && f_untold == 3,
    told_behind == SLOTS && s_valid && !s_ready,
    r_valid && out_last && r_ready,
    m_valid && out_last && m_ready
};
always @(posedge clk) if (f_past && !reset) assert (!f_cases[`COVER]);
`endif
