// The data channel of the pings: UDP without retransmissions, where the browser has it.

// Both ends know the channel, so it need not be announced.
const OPTIONS = { ordered: false, maxRetransmits: 0, negotiated: true, id: 0 };
const PRIORITY = 2130706431;

function field(sdp, name) {
  return sdp.match(new RegExp(`^a=${name}:(.*?)\\r?$`, "m"))[1];
}

// The server's end as an answer to the browser's offer. Its address is the one that it has, or the one that we call it by.
function answer({ ufrag, pwd, fingerprint, address, port }) {
  const called = location.hostname.replace(/^\[|\]$/g, "");
  const own = Number(location.port) || (location.protocol === "https:" ? 443 : 80);
  const places = new Map([[`${called} ${own}`, [called, own]]]);
  if (address) places.set(`${address} ${port}`, [address, port]);
  const candidates = [...places.values()].map(
    ([at, on], number) => `a=candidate:${number + 1} 1 udp ${PRIORITY - number} ${at} ${on} typ host`,
  );
  const lines = [
    "v=0",
    "o=- 1 1 IN IP4 0.0.0.0",
    "s=-",
    "t=0 0",
    "a=ice-lite",
    "a=group:BUNDLE 0",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "c=IN IP4 0.0.0.0",
    "a=mid:0",
    `a=ice-ufrag:${ufrag}`,
    `a=ice-pwd:${pwd}`,
    `a=fingerprint:sha-256 ${fingerprint}`,
    "a=setup:passive",
    "a=sctp-port:5000",
    "a=max-message-size:256",
    ...candidates,
    "a=end-of-candidates",
  ];
  return lines.map((line) => `${line}\r\n`).join("");
}

export class Channel {
  // Hands a channel to the worker of the pings, and says how its other end is reached; throws where the browser cannot.
  async open(worker) {
    this.connection = new RTCPeerConnection();
    const channel = this.connection.createDataChannel("pings", OPTIONS);
    worker.postMessage({ channel }, [channel]);
    await this.connection.setLocalDescription(await this.connection.createOffer());
    const { sdp } = this.connection.localDescription;
    const [kind, fingerprint] = field(sdp, "fingerprint").split(" ");
    if (kind !== "sha-256") throw new Error(kind);
    return { ufrag: field(sdp, "ice-ufrag"), pwd: field(sdp, "ice-pwd"), fingerprint };
  }

  async connect(end) {
    await this.connection.setRemoteDescription({ type: "answer", sdp: answer(end) });
  }

  close() {
    this.connection?.close();
  }
}
