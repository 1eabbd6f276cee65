// The filter with its orders in the host's memory: slots from the submission ring to the core, verdicts of the core into the
// completion ring. Frames stay with the host. docs/prefilter.md has slots, verdicts and registers.
//
// The host's memory is reached by words of eight bytes, one read at a time: that shows the rings' protocol, and no more. The
// bridge of a board (XDMA, QDMA) moves whole slots.
module pf_rings #(
    parameter SYMBOLS_LOG2 = 7,
    parameter SESSIONS_LOG2 = 7
) (
    input  logic        clk,
    input  logic        reset,
    // Registers.
    input  logic        write,
    input  logic [11:0] write_address,
    input  logic [31:0] write_data,
    input  logic [11:0] read_address,
    output logic [31:0] read_data,
    // Reads of the host's memory. What was read comes later, as `word_valid` for one clock.
    output logic        ask_valid,
    input  logic        ask_ready,
    output logic [63:0] ask_address,
    input  logic        word_valid,
    input  logic [63:0] word_data,
    // Writes to it, in order.
    output logic        put_valid,
    input  logic        put_ready,
    output logic [63:0] put_address,
    output logic [63:0] put_data
);
    logic on;
    logic [4:0] size_log2;
    logic [63:0] submission, completion;
    // Slots put into the ring by the host, slots taken, verdicts given; they turn over.
    logic [31:0] tail, taken, given;
    logic [31:0] mask;
    assign mask = (32'd1 << size_log2) - 1;

    // A slot is read from its word 6 on, and then from 0: time and length come before the order.
    logic busy, valid, post_only, bad_length;
    logic [2:0] step;
    logic [63:0] now, data;
    logic [31:0] number;
    logic s_ready;
    assign ask_address = submission + {26'd0, taken & mask, 6'd0} + {58'd0, step + 3'd6, 3'd0};

    logic v_valid, upper;
    logic [127:0] v_data;
    assign put_valid = v_valid;
    assign put_address = completion + {28'd0, given & mask, 4'd0} + {60'd0, upper, 3'd0};
    // The phase of the first round is 1. It is in the last byte that is written.
    assign put_data = upper ? {7'd0, !given[size_log2], v_data[119:64]} : v_data[63:0];

    always_ff @(posedge clk) begin
        if (!busy && on && taken != tail && taken - given <= mask) begin
            busy <= 1;
            step <= 0;
            ask_valid <= 1;
        end
        if (ask_valid && ask_ready) ask_valid <= 0;
        if (word_valid && busy) case (step)
            3'd0: begin
                now <= word_data;
                step <= 1;
                ask_valid <= 1;
            end
            3'd1: begin
                number <= word_data[31:0];
                bad_length <= word_data[47:32] != 48;
                post_only <= word_data[48];
                step <= 2;
                ask_valid <= 1;
            end
            default: begin
                data <= word_data;
                valid <= 1;
            end
        endcase
        if (valid && s_ready) begin
            valid <= 0;
            step <= step + 1;
            if (step == 7) begin
                busy <= 0;
                taken <= taken + 1;
            end else begin
                ask_valid <= 1;
            end
        end
        if (put_valid && put_ready) begin
            upper <= !upper;
            if (upper) given <= given + 1;
        end
        if (write) case (write_address)
            12'h100: submission[31:0] <= write_data;
            12'h104: submission[63:32] <= write_data;
            12'h108: completion[31:0] <= write_data;
            12'h10C: completion[63:32] <= write_data;
            12'h110: begin
                on <= write_data[31];
                size_log2 <= write_data[4:0];
            end
            12'h114: tail <= write_data;
            default: ;
        endcase
        if (reset) begin
            on <= 0;
            tail <= 0;
            taken <= 0;
            given <= 0;
            busy <= 0;
            valid <= 0;
            ask_valid <= 0;
            upper <= 0;
        end
    end

    pf_core #(.SYMBOLS_LOG2(SYMBOLS_LOG2), .SESSIONS_LOG2(SESSIONS_LOG2), .RINGS(1)) core (
        .clk(clk), .reset(reset), .write(write), .write_address(write_address), .write_data(write_data),
        .read_address(read_address), .read_data(read_data), .s_valid(valid), .s_ready(s_ready), .s_data(data),
        .s_keep(8'hFF), .s_last(step == 7), .s_bad_length(bad_length), .s_now(now), .s_post_only(post_only),
        .s_sequence(number), .m_valid(), .m_ready(1'b1), .r_valid(), .r_ready(1'b1), .out_data(), .out_keep(),
        .out_last(), .v_valid(v_valid), .v_ready(put_ready && upper), .v_data(v_data));
endmodule
