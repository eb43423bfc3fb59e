import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'too slow', command: "curl -s -w '%{http_code}\\n' 'http://localhost:8080/slow?delay=20000'", prints: /request timeout ?504/ },
    {
      title: 'fails twice, and the client never knows',
      command: 'curl -s -o /dev/null -w \'%{http_code}\\n\' "http://localhost:8080/flaky?failures=2&key=$$"',
      prints: /200/,
    },
  ],
} satisfies Example
