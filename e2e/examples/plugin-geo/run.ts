import type { Example } from '../../harness/example/example.ts'

/** Sends a request as a load balancer does for a client of this address. */
const from = (address: string): string =>
  `{ printf 'PROXY TCP4 ${address} 127.0.0.1 4000 80\\r\\nGET / HTTP/1.1\\r\\nhost: a\\r\\nconnection: close\\r\\n\\r\\n' >&3; cat <&3; } 3<>/dev/tcp/127.0.0.1/8080`

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'the upstream receives the country', command: 'curl -s http://localhost:8080/', prints: /"x-country":"AA"/ },
    { title: 'a client of a denied country: 451', command: from('192.0.2.7'), prints: /^HTTP\/1\.1 451 [^]*{"error":"not available in your country"}$/ },
    { title: 'a client of another one', command: from('198.51.100.7'), prints: /"x-country":"BB"/ },
  ],
} satisfies Example
