import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'bank', port: 9001, kind: 'tls' },
    { name: 'shops', port: 9002, kind: 'tls' },
  ],
  certificates: [
    { name: 'bank', hosts: ['bank.example.com'], isSecret: false },
    { name: 'shops', hosts: ['*.shop.example.com'], isSecret: false },
  ],
  commands: [
    {
      title: 'curl verifies the certificate of the upstream',
      command: 'curl -s --cacert {dir}/generated/ca.crt --connect-to ::localhost:8443 https://bank.example.com/',
      prints: /"name":"bank".*"sni":"bank.example.com"/,
    },
    {
      title: 'a wildcard',
      command: 'curl -s --cacert {dir}/generated/ca.crt --connect-to ::localhost:8443 https://books.shop.example.com/',
      prints: /"name":"shops".*"sni":"books.shop.example.com"/,
    },
  ],
} satisfies Example
