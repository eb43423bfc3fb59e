import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001, kind: 'tls', certificate: 'app' }],
  certificates: [
    { name: 'mtls-server', hosts: ['localhost', '127.0.0.1'] },
    { name: 'client', hosts: ['client.example.com'], isSecret: false },
    { name: 'app', hosts: ['app.internal'], isSecret: false },
  ],
  commands: [
    {
      title: 'with a client certificate',
      command: 'curl -s --cacert {dir}/generated/ca.crt --cert {dir}/generated/client.crt --key {dir}/generated/client.key https://localhost:8443/',
      prints: /"name":"app".*"sni":"app.internal"/,
    },
    {
      title: 'without a client certificate',
      command: 'curl -s -o /dev/null --cacert {dir}/generated/ca.crt https://localhost:8443/ || echo "refused"',
      prints: /refused/,
    },
  ],
} satisfies Example
