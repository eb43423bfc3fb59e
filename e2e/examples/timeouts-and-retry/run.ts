import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    { title: 'a response after the timeout', command: "curl -s -w '%{http_code}\\n' 'http://localhost:8080/slow?delay=20000'", prints: /request timeout ?504/ },
    {
      title: 'two failures that the client does not notice',
      command: 'curl -s -o /dev/null -w \'%{http_code}\\n\' "http://localhost:8080/flaky?failures=2&id=$$"',
      prints: /200/,
    },
  ],
} satisfies Example
