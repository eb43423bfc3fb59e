import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'a client behind a proxy',
      command: "curl -s -H 'X-Forwarded-For: 198.51.100.7' http://localhost:8080/",
      prints: /"x-forwarded-for":"198\.51\.100\.7, 127\.0\.0\.1"/,
    },
    {
      title: 'a blocked client, which pretends to be another one: 403',
      command: "curl -s -H 'X-Forwarded-For: 198.51.100.7, 203.0.113.9' http://localhost:8080/",
      prints: /^client address not allowed$/,
    },
    { title: 'no address: 403', command: "curl -s -H 'X-Forwarded-For: unknown' http://localhost:8080/", prints: /^client address unknown$/ },
  ],
} satisfies Example
