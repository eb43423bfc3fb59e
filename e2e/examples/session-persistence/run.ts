import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'one', port: 9001 },
    { name: 'two', port: 9002 },
    { name: 'three', port: 9003 },
  ],
  commands: [
    {
      title: 'the first response sets the cookie',
      command: 'curl -s -o /dev/null -D - http://localhost:8080/',
      prints: /set-cookie: cart=[\w+/=]+; Path=\/; Max-Age=3600; HttpOnly; SameSite=Strict/i,
    },
  ],
} satisfies Example
