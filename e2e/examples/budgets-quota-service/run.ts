import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'services', port: 9002, kind: 'services' },
  ],
  commands: [
    {
      title: 'two requests of a tenant pass, the third does not',
      command: "for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code} ' -H 'x-tenant: blue' http://localhost:8080/search; done",
      prints: /^200 200 429 $/,
    },
    {
      title: 'a tenant without a quota',
      command: "curl -s -H 'x-tenant: blocked' http://localhost:8080/search",
      prints: /budget "tenant" is used up until/,
    },
  ],
} satisfies Example
