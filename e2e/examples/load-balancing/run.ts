import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'one', port: 9001 },
    { name: 'two', port: 9002 },
    { name: 'three', port: 9003 },
  ],
  commands: [
    {
      title: 'a client without the cookie gets one',
      command: 'curl -s -o /dev/null -D - http://localhost:8080/',
      prints: /set-cookie: cart=[\da-f-]{36}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax/i,
    },
    {
      title: 'all requests with one cookie go to one endpoint',
      command: `for i in 1 2 3 4 5 6; do curl -s -b cart=7 http://localhost:8080/ | grep -o '"name":"[a-z]*"'; done | sort -u | wc -l`,
      prints: /^\s*1\s*$/,
    },
  ],
} satisfies Example
