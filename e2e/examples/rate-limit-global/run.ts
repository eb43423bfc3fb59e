import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'app', port: 9001 },
    { name: 'services', port: 9002, kind: 'services' },
  ],
  commands: [
    {
      title: 'two requests per tenant pass, the third does not',
      command: "for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code} ' -H 'x-tenant: blue' http://localhost:8080/search; done",
      prints: /^200 200 429 $/,
    },
    {
      title: 'the remaining requests',
      command: "curl -si -H 'x-tenant: green' http://localhost:8080/search | grep -i '^x-ratelimit'",
      prints: /x-ratelimit-limit: 2\s+x-ratelimit-remaining: 1/i,
    },
  ],
} satisfies Example
