// A QuickFIX initiator that is driven line by line: commands on stdin, what its sessions see on stdout.
// The suite (suite.py) decides what is sent and judges what comes; this program adds nothing of its own.
//
//   initiator SETTINGS
//
// commands: send SESSION TAG=VALUE|TAG=VALUE…   the first tag is 35
//           skip SESSION COUNT                  the next number is COUNT higher
//           logout SESSION
// events:   logon SESSION, logout SESSION, in SESSION MESSAGE, out SESSION MESSAGE
//
// A session is named by its SenderCompID. In messages the delimiter is shown as `|`.

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketInitiator.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

namespace {

class Events : public FIX::Application {
public:
  FIX::Session *session(const std::string &name) { return FIX::Session::lookupSession(ids.at(name)); }

private:
  // All of them are called by the initiator's thread, onCreate before it starts.
  void onCreate(const FIX::SessionID &id) override { ids[id.getSenderCompID()] = id; }
  void onLogon(const FIX::SessionID &id) override { print("logon", id, ""); }
  void onLogout(const FIX::SessionID &id) override { print("logout", id, ""); }
  void toAdmin(FIX::Message &message, const FIX::SessionID &id) override { print("out", id, message.toString()); }
  void toApp(FIX::Message &message, const FIX::SessionID &id) throw(FIX::DoNotSend) override {
    print("out", id, message.toString());
  }
  void fromAdmin(const FIX::Message &message, const FIX::SessionID &id) throw(
      FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) override {
    print("in", id, message.toString());
  }
  void fromApp(const FIX::Message &message, const FIX::SessionID &id) throw(
      FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
    print("in", id, message.toString());
  }

  void print(const char *event, const FIX::SessionID &id, std::string message) {
    std::replace(message.begin(), message.end(), '\001', '|');
    const std::lock_guard<std::mutex> guard(lock);
    std::cout << event << ' ' << id.getSenderCompID().getValue() << ' ' << message << std::endl;
  }

  std::map<std::string, FIX::SessionID> ids;
  std::mutex lock;
};

void send(FIX::Session &session, std::istream &fields) {
  FIX::Message message;
  for (std::string field; std::getline(fields, field, '|');) {
    const auto equals = field.find('=');
    const int tag = std::stoi(field.substr(0, equals));
    const std::string value = field.substr(equals + 1);
    if (tag == FIX::FIELD::MsgType)
      message.getHeader().setField(tag, value);
    else
      message.setField(tag, value);
  }
  session.send(message);
}

void obey(Events &events, const std::string &line) {
  std::istringstream words(line);
  std::string command, name;
  words >> command >> name >> std::ws;
  FIX::Session &session = *events.session(name);
  if (command == "send") {
    send(session, words);
  } else if (command == "skip") {
    int count = 0;
    words >> count;
    session.setNextSenderMsgSeqNum(session.getExpectedSenderNum() + count);
  } else if (command == "logout") {
    session.logout();
  } else {
    throw std::runtime_error("no command " + command);
  }
}

} // namespace

int main(int, char **arguments) {
  try {
    FIX::SessionSettings settings(arguments[1]);
    Events events;
    FIX::FileStoreFactory stores(settings);
    FIX::SocketInitiator initiator(events, stores, settings);
    initiator.start();
    for (std::string line; std::getline(std::cin, line);)
      obey(events, line);
    initiator.stop(true);
  } catch (const std::exception &error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
