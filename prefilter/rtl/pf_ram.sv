// A memory with one port to write and one to read; what is read appears with the next clock and stays.
module pf_ram #(
    parameter WIDTH = 64,
    parameter DEPTH_LOG2 = 7
) (
    input  logic                  clk,
    input  logic                  write,
    input  logic [DEPTH_LOG2-1:0] write_address,
    input  logic [WIDTH-1:0]      write_data,
    input  logic                  read,
    input  logic [DEPTH_LOG2-1:0] read_address,
    output logic [WIDTH-1:0]      read_data
);
`ifdef FORMAL
    // Proofs hold whatever the tables say.
    (* anyseq *) logic [WIDTH-1:0] anything;
    always_ff @(posedge clk) if (read) read_data <= anything;
`else
    // In blocks, also where it is small: their address is a register, and nothing comes between.
    (* ram_style = "block" *) logic [WIDTH-1:0] memory [0:(1 << DEPTH_LOG2)-1];
    always_ff @(posedge clk) begin
        if (write) memory[write_address] <= write_data;
        if (read) read_data <= memory[read_address];
    end
`endif
endmodule
