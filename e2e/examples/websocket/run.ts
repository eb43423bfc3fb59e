import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'chat', port: 9001 }],
  commands: [
    {
      title: 'the handshake (any WebSocket client works: ws://localhost:8080/chat)',
      command:
        "curl -si --max-time 5 --http1.1 -H 'connection: upgrade' -H 'upgrade: websocket' -H 'sec-websocket-version: 13' -H 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==' http://localhost:8080/chat | head -1",
      prints: /101 Switching Protocols/,
    },
  ],
} satisfies Example
