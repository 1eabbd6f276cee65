// For place and route alone: every input comes from a register and every output goes into one, over four pins, so that the
// figures are those of the filter and not of pads.
module pf_fit #(
    parameter SYMBOLS_LOG2 = 7,
    parameter SESSIONS_LOG2 = 7
) (
    input  logic clk,
    input  logic reset,
    input  logic in,
    output logic out
);
    localparam INS = 1 + 12 + 32 + 12 + 64 + 1 + 64 + 8 + 1 + 1 + 3;
    localparam OUTS = 32 + 1 + 2 * (1 + 64 + 8 + 1) + 1 + 128;
    logic reset_;
    logic [INS-1:0] chain;
    logic [OUTS-1:0] outs, kept, out_chain;
    always_ff @(posedge clk) begin
        reset_ <= reset;
        chain <= {chain[INS-2:0], in};
        kept <= outs;
        // One after the other, and every one counts.
        out <= ^{out_chain[7:0]};
        out_chain <= kept ^ {out_chain[OUTS-2:0], out_chain[OUTS-1]};
    end
    prefilter #(.WIDTH(64), .SYMBOLS_LOG2(SYMBOLS_LOG2), .SESSIONS_LOG2(SESSIONS_LOG2)) filter (
        .clk(clk), .reset(reset_), .write(chain[0]), .write_address(chain[12:1]), .write_data(chain[44:13]),
        .read_address(chain[56:45]), .now(chain[120:57]), .s_axis_tvalid(chain[121]), .s_axis_tdata(chain[185:122]),
        .s_axis_tkeep(chain[193:186]), .s_axis_tlast(chain[194]), .s_axis_tuser(chain[195]), .m_axis_tready(chain[196]),
        .r_axis_tready(chain[197]), .v_axis_tready(chain[198]),
        .read_data(outs[31:0]), .s_axis_tready(outs[32]), .m_axis_tvalid(outs[33]), .m_axis_tdata(outs[97:34]),
        .m_axis_tkeep(outs[105:98]), .m_axis_tlast(outs[106]), .r_axis_tvalid(outs[107]), .r_axis_tdata(outs[171:108]),
        .r_axis_tkeep(outs[179:172]), .r_axis_tlast(outs[180]), .v_axis_tvalid(outs[181]), .v_axis_tdata(outs[309:182]));
endmodule
