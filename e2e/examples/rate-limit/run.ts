import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'three requests pass, the fourth does not',
      command: "for i in 1 2 3 4; do curl -s -o /dev/null -w '%{http_code} ' http://localhost:8080/search; done",
      prints: /^200 200 200 429 $/,
    },
    {
      title: 'the remaining requests',
      command: "curl -si http://localhost:8080/pages | grep -i '^x-ratelimit'",
      prints: /x-ratelimit-limit: 1000\s+x-ratelimit-remaining: 999\s+x-ratelimit-reset: \d+/i,
    },
  ],
} satisfies Example
