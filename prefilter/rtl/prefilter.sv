// The pre-filter in a stream of orders: frames in and out by AXI-Stream of 64 or 512 bits, one order a frame; registers by
// a port of 32 bits. Frames are numbered from 0 as they come.
module prefilter #(
    parameter WIDTH = 64,
    parameter SYMBOLS_LOG2 = 7,
    parameter SESSIONS_LOG2 = 7
) (
    input  logic               clk,
    input  logic               reset,
    input  logic               write,
    input  logic [11:0]        write_address,
    input  logic [31:0]        write_data,
    input  logic [11:0]        read_address,
    output logic [31:0]        read_data,
    // UTC nanoseconds.
    input  logic [63:0]        now,
    input  logic               s_axis_tvalid,
    output logic               s_axis_tready,
    input  logic [WIDTH-1:0]   s_axis_tdata,
    input  logic [WIDTH/8-1:0] s_axis_tkeep,
    input  logic               s_axis_tlast,
    // The order is post-only.
    input  logic               s_axis_tuser,
    // Frames that passed.
    output logic               m_axis_tvalid,
    input  logic               m_axis_tready,
    output logic [WIDTH-1:0]   m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic               m_axis_tlast,
    // Frames that were refused.
    output logic               r_axis_tvalid,
    input  logic               r_axis_tready,
    output logic [WIDTH-1:0]   r_axis_tdata,
    output logic [WIDTH/8-1:0] r_axis_tkeep,
    output logic               r_axis_tlast,
    // A verdict for each frame.
    output logic               v_axis_tvalid,
    input  logic               v_axis_tready,
    output logic [127:0]       v_axis_tdata
);
    logic s_valid, s_ready, s_last, s_post_only, m_valid, m_ready, r_valid, r_ready, out_last;
    logic [63:0] s_data, s_now, out_data;
    logic [7:0] s_keep, out_keep;

    // The number of the next frame.
    logic [31:0] number;
    always_ff @(posedge clk) begin
        if (s_valid && s_ready && s_last) number <= number + 1;
        if (reset) number <= 0;
    end

    pf_core #(.SYMBOLS_LOG2(SYMBOLS_LOG2), .SESSIONS_LOG2(SESSIONS_LOG2), .STREAM_LOG2($clog2(WIDTH))) core (
        .clk(clk), .reset(reset), .write(write), .write_address(write_address), .write_data(write_data),
        .read_address(read_address), .read_data(read_data), .s_valid(s_valid), .s_ready(s_ready), .s_data(s_data),
        .s_keep(s_keep), .s_last(s_last), .s_bad_length(1'b0), .s_now(s_now), .s_post_only(s_post_only),
        .s_sequence(number), .m_valid(m_valid), .m_ready(m_ready), .r_valid(r_valid), .r_ready(r_ready),
        .out_data(out_data), .out_keep(out_keep), .out_last(out_last), .v_valid(v_axis_tvalid),
        .v_ready(v_axis_tready), .v_data(v_axis_tdata));

    generate
        if (WIDTH == 64) begin : narrow
            assign s_valid = s_axis_tvalid;
            assign s_axis_tready = s_ready;
            assign s_data = s_axis_tdata;
            assign s_keep = s_axis_tkeep;
            assign s_last = s_axis_tlast;
            assign s_now = now;
            assign s_post_only = s_axis_tuser;
            assign m_axis_tvalid = m_valid;
            assign m_ready = m_axis_tready;
            assign m_axis_tdata = out_data;
            assign m_axis_tkeep = out_keep;
            assign m_axis_tlast = out_last;
            assign r_axis_tvalid = r_valid;
            assign r_ready = r_axis_tready;
            assign r_axis_tdata = out_data;
            assign r_axis_tkeep = out_keep;
            assign r_axis_tlast = out_last;
        end else begin : wide
            pf_narrow down (
                .clk(clk), .reset(reset), .s_valid(s_axis_tvalid), .s_ready(s_axis_tready), .s_data(s_axis_tdata),
                .s_keep(s_axis_tkeep), .s_last(s_axis_tlast), .s_now(now), .s_post_only(s_axis_tuser), .m_valid(s_valid),
                .m_ready(s_ready), .m_data(s_data), .m_keep(s_keep), .m_last(s_last), .m_now(s_now),
                .m_post_only(s_post_only));
            pf_widen passed (
                .clk(clk), .reset(reset), .s_valid(m_valid), .s_ready(m_ready), .s_data(out_data), .s_keep(out_keep),
                .s_last(out_last), .m_valid(m_axis_tvalid), .m_ready(m_axis_tready), .m_data(m_axis_tdata),
                .m_keep(m_axis_tkeep), .m_last(m_axis_tlast));
            pf_widen refused (
                .clk(clk), .reset(reset), .s_valid(r_valid), .s_ready(r_ready), .s_data(out_data), .s_keep(out_keep),
                .s_last(out_last), .m_valid(r_axis_tvalid), .m_ready(r_axis_tready), .m_data(r_axis_tdata),
                .m_keep(r_axis_tkeep), .m_last(r_axis_tlast));
        end
    endgenerate
endmodule
