-- Shows LTP, the lightweight transport protocol of docs/ltp.md, in Wireshark and tshark.
--
--   tshark -X lua_script:docs/ltp.lua -r capture.pcap
--   tshark -X lua_script:docs/ltp.lua -d udp.port==7201,tgltp -r capture.pcap
--
-- A conversation is recognised by its handshake, which also says which header it has and whether there is a key. For a
-- capture that begins later, name the port (-d) and, for the compact header or a key, set the preferences tgltp.compact
-- and tgltp.key.

-- Wireshark has an `ltp` of its own, Licklider's.
local ltp = Proto("tgltp", "Lightweight Transport Protocol")

local kinds = {
  [1] = "Data", [2] = "Packed", [3] = "Ack", [4] = "Nak", [5] = "Heartbeat", [6] = "Negotiate", [7] = "Negotiated",
  [8] = "Establish", [9] = "Established", [10] = "Refuse", [11] = "Credits",
}
local reasons = {
  [1] = "version", [2] = "session", [3] = "key", [4] = "unknown negotiation", [5] = "stale epoch",
  [6] = "messages gone", [7] = "numbers ahead", [8] = "numbers behind", [9] = "message length", [10] = "parameters",
  [11] = "header", [12] = "copies", [13] = "packed",
}
-- Template ids of docs/native.xml.
local templates = {
  [1] = "NewOrder", [2] = "CancelOrder", [3] = "ReplaceOrder", [4] = "MassCancel", [5] = "InstrumentRequest",
  [6] = "NewOrderLong", [7] = "ReplaceOrderLong", [8] = "OrderStatusRequest", [9] = "MassStatusRequest",
  [11] = "ExecutionReport", [12] = "Reject", [13] = "InstrumentDefinition", [14] = "RequestsReceived",
}
local native_schema = 18260

local f = {
  tag = ProtoField.uint32("tgltp.tag", "Session tag", base.HEX),
  direction = ProtoField.string("tgltp.direction", "From"),
  sequence = ProtoField.uint32("tgltp.sequence", "Sequence"),
  ack = ProtoField.uint32("tgltp.ack", "Ack"),
  length = ProtoField.uint16("tgltp.length", "Payload length"),
  kind = ProtoField.uint8("tgltp.kind", "Kind", base.DEC, kinds),
  retransmit = ProtoField.bool("tgltp.retransmit", "Transmitted before"),
  mac = ProtoField.uint64("tgltp.mac", "Authentication tag", base.HEX),
  message = ProtoField.bytes("tgltp.message", "Message"),
  number = ProtoField.uint32("tgltp.number", "Number"),
  native = ProtoField.string("tgltp.native", "Native message"),
  serial = ProtoField.uint64("tgltp.serial", "Serial"),
  durable = ProtoField.uint64("tgltp.durable", "Durable"),
  duplicates = ProtoField.uint32("tgltp.duplicates", "Duplicates"),
  slots = ProtoField.uint32("tgltp.slots", "Open orders granted"),
  first = ProtoField.uint32("tgltp.nak.first", "First number asked for"),
  missing = ProtoField.uint32("tgltp.nak.missing", "Missing"),
  initiator_nonce = ProtoField.uint64("tgltp.initiator_nonce", "Initiator nonce", base.HEX),
  acceptor_nonce = ProtoField.uint64("tgltp.acceptor_nonce", "Acceptor nonce", base.HEX),
  key_id = ProtoField.uint32("tgltp.key_id", "Key id"),
  session = ProtoField.uint16("tgltp.session", "Session"),
  version = ProtoField.uint8("tgltp.version", "Version"),
  epoch = ProtoField.uint64("tgltp.epoch", "Epoch"),
  next_expected = ProtoField.uint64("tgltp.next_expected", "Next expected"),
  next_send = ProtoField.uint64("tgltp.next_send", "Next send"),
  window = ProtoField.uint32("tgltp.window", "Window"),
  ack_delay = ProtoField.uint32("tgltp.ack_delay", "Ack delay (ns)"),
  heartbeat = ProtoField.uint32("tgltp.heartbeat", "Heartbeat (us)"),
  max_message = ProtoField.uint16("tgltp.max_message", "Longest message"),
  header = ProtoField.uint8("tgltp.header", "Header bytes"),
  copies = ProtoField.uint8("tgltp.copies", "Copies"),
  given = ProtoField.uint64("tgltp.refuse.given", "Given"),
  held = ProtoField.uint64("tgltp.refuse.held", "Held"),
  reason = ProtoField.uint16("tgltp.refuse.reason", "Reason", base.DEC, reasons),
}
ltp.fields = f

local malformed = ProtoExpert.new("tgltp.malformed", "Not as long as it says", expert.group.MALFORMED, expert.severity.ERROR)
ltp.experts = { malformed }

ltp.prefs.compact = Pref.bool("Compact header", false, "Of conversations whose handshake is not in the capture")
ltp.prefs.key = Pref.bool("Authenticated", false, "Of conversations whose handshake is not in the capture")

-- What handshakes have said, by the conversation's two ends.
local conversations = {}

local function conversation(pinfo)
  local source = tostring(pinfo.src) .. ":" .. pinfo.src_port
  local destination = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
  local name = source < destination and source .. " " .. destination or destination .. " " .. source
  if not conversations[name] then
    conversations[name] = { compact = ltp.prefs.compact, key = ltp.prefs.key }
  end
  return conversations[name]
end

function ltp.init()
  conversations = {}
end

-- One message: its number, and what it is in the native protocol.
local function message(buffer, tree, number)
  local node = tree:add_le(f.message, buffer)
  node:add(f.number, number):set_generated()
  local name
  if buffer:len() >= 8 and buffer(4, 2):le_uint() == native_schema then
    name = templates[buffer(2, 2):le_uint()]
  end
  if name then
    node:add(f.native, name):set_generated()
    node:append_text(" (" .. name .. ")")
  end
  return name
end

local payloads = {}

payloads[1] = function(buffer, tree, number)
  return "number " .. number .. " " .. (message(buffer, tree, number) or "")
end

payloads[2] = function(buffer, tree, number)
  local at, count = 0, 0
  local names = {}
  while at + 2 <= buffer:len() do
    local length = buffer(at, 2):le_uint()
    if length == 0 or at + 2 + length > buffer:len() then break end
    local name = message(buffer(at + 2, length), tree, number + count)
    if name then names[#names + 1] = name end
    at = at + 2 + length
    count = count + 1
  end
  return count .. " from number " .. number .. " " .. table.concat(names, ", ")
end

local function status(buffer, tree)
  tree:add_le(f.serial, buffer(0, 8))
  tree:add_le(f.durable, buffer(8, 8))
  tree:add_le(f.duplicates, buffer(16, 4))
  return ""
end

payloads[3] = status
payloads[5] = status

payloads[4] = function(buffer, tree)
  tree:add_le(f.serial, buffer(0, 8))
  tree:add_le(f.first, buffer(8, 4))
  local first = buffer(8, 4):le_uint()
  local numbers = {}
  for at = 16, buffer:len() - 1 do
    local byte = buffer(at, 1):uint()
    for bit = 0, 7 do
      if math.floor(byte / 2 ^ bit) % 2 == 1 then
        local number = (first + (at - 16) * 8 + bit) % 2 ^ 32
        tree:add(f.missing, buffer(at, 1), number)
        numbers[#numbers + 1] = string.format("%d", number)
      end
    end
  end
  return "missing " .. table.concat(numbers, ", ", 1, math.min(#numbers, 8)) .. (#numbers > 8 and " ..." or "")
end

payloads[11] = function(buffer, tree)
  tree:add_le(f.serial, buffer(0, 8))
  tree:add_le(f.slots, buffer(8, 4))
  return buffer(8, 4):le_uint() .. " open orders"
end

local function negotiation(buffer, tree, at)
  tree:add_le(f.key_id, buffer(at, 4))
  tree:add_le(f.session, buffer(at + 4, 2))
  tree:add_le(f.version, buffer(at + 6, 1))
  return "session " .. buffer(at + 4, 2):le_uint()
end

payloads[6] = function(buffer, tree)
  tree:add_le(f.initiator_nonce, buffer(0, 8))
  return negotiation(buffer, tree, 8)
end

payloads[7] = function(buffer, tree)
  tree:add_le(f.initiator_nonce, buffer(0, 8))
  tree:add_le(f.acceptor_nonce, buffer(8, 8))
  return negotiation(buffer, tree, 16)
end

local function establish(buffer, tree)
  tree:add_le(f.initiator_nonce, buffer(0, 8))
  tree:add_le(f.acceptor_nonce, buffer(8, 8))
  tree:add_le(f.epoch, buffer(16, 8))
  tree:add_le(f.next_expected, buffer(24, 8))
  tree:add_le(f.next_send, buffer(32, 8))
  tree:add_le(f.durable, buffer(40, 8))
  tree:add_le(f.window, buffer(48, 4))
  tree:add_le(f.ack_delay, buffer(52, 4))
  tree:add_le(f.heartbeat, buffer(56, 4))
  tree:add_le(f.max_message, buffer(60, 2))
  tree:add_le(f.session, buffer(62, 2))
  tree:add_le(f.header, buffer(64, 1))
  tree:add_le(f.copies, buffer(65, 1))
  return "epoch " .. tostring(buffer(16, 8):le_uint64()) .. " expects " .. tostring(buffer(24, 8):le_uint64())
end

payloads[8] = establish
payloads[9] = establish

payloads[10] = function(buffer, tree)
  tree:add_le(f.initiator_nonce, buffer(0, 8))
  tree:add_le(f.acceptor_nonce, buffer(8, 8))
  tree:add_le(f.given, buffer(16, 8))
  tree:add_le(f.held, buffer(24, 8))
  tree:add_le(f.reason, buffer(32, 2))
  return reasons[buffer(32, 2):le_uint()] or "reason unknown"
end

-- Least payload of each kind.
local least = { [1] = 1, [2] = 3, [3] = 24, [4] = 24, [5] = 24, [6] = 16, [7] = 24, [8] = 72, [9] = 72, [10] = 40, [11] = 16 }

local function full_header(buffer, tree)
  tree:add_le(f.tag, buffer(0, 4))
  tree:add_le(f.sequence, buffer(4, 4))
  tree:add_le(f.ack, buffer(8, 4))
  tree:add_le(f.length, buffer(12, 2))
  tree:add_le(f.kind, buffer(14, 1))
  tree:add(f.retransmit, buffer(15, 1), buffer(15, 1):uint() % 2 == 1)
  local tag = buffer(0, 4):le_uint()
  return {
    bytes = 16, kind = buffer(14, 1):uint(), length = buffer(12, 2):le_uint(), sequence = buffer(4, 4):le_uint(),
    handshake = tag == 0, acceptor = tag >= 2 ^ 31,
  }
end

local function compact_header(buffer, tree)
  local word = buffer(6, 2):le_uint()
  local kind, length = math.floor(word / 4096), word % 2048
  tree:add(f.tag, buffer(0, 2), buffer(0, 2):le_uint())
  tree:add(f.sequence, buffer(2, 2), buffer(2, 2):le_uint())
  tree:add(f.ack, buffer(4, 2), buffer(4, 2):le_uint())
  tree:add(f.length, buffer(6, 2), length)
  tree:add(f.kind, buffer(6, 2), kind)
  tree:add(f.retransmit, buffer(6, 2), math.floor(word / 2048) % 2 == 1)
  return {
    bytes = 8, kind = kind, length = length, sequence = buffer(2, 2):le_uint(), handshake = false,
    acceptor = buffer(0, 2):le_uint() >= 2 ^ 15,
  }
end

function ltp.dissector(buffer, pinfo, root)
  local is_handshake = buffer:len() >= 16 and buffer(0, 4):le_uint() == 0
  local said = conversation(pinfo)
  if buffer:len() < (said.compact and not is_handshake and 8 or 16) then return 0 end
  pinfo.cols.protocol = "LTP"
  local tree = root:add(ltp, buffer())
  local header = (said.compact and not is_handshake) and compact_header(buffer, tree) or full_header(buffer, tree)
  local rest = buffer:len() - header.bytes - header.length
  if is_handshake then
    if rest == 8 or rest == 0 then said.key = rest == 8 end
    if header.kind == 8 and header.length >= 72 then said.compact = buffer(16 + 64, 1):uint() == 8 end
  else
    tree:add(f.direction, header.acceptor and "acceptor" or "initiator"):set_generated()
  end
  local name = kinds[header.kind] or "unknown"
  local info = name
  if rest ~= (said.key and 8 or 0) or header.length < (least[header.kind] or 0) then
    tree:add_proto_expert_info(malformed)
  elseif payloads[header.kind] then
    info = name .. " " .. payloads[header.kind](buffer(header.bytes, header.length), tree, header.sequence)
  end
  if said.key and rest == 8 then
    tree:add_le(f.mac, buffer(header.bytes + header.length, 8))
  end
  tree:append_text(", " .. info)
  pinfo.cols.info = info
  return buffer:len()
end

-- A first step of the handshake, and nothing else, makes a conversation LTP.
local function recognise(buffer, pinfo, root)
  local is_negotiate = buffer:len() >= 32 and buffer(0, 4):le_uint() == 0 and buffer(14, 1):uint() == 6
    and buffer(12, 2):le_uint() == 16 and buffer(30, 1):uint() == 2
  if not is_negotiate then return false end
  pinfo.conversation = ltp
  ltp.dissector(buffer, pinfo, root)
  return true
end

ltp:register_heuristic("udp", recognise)
DissectorTable.get("udp.port"):add_for_decode_as(ltp)
