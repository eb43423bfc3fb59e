import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'stable', port: 9001 },
    { name: 'beta', port: 9002 },
  ],
  commands: [
    {
      title: 'a header computed from the host',
      command: "curl -si -H 'Host: acme.example.com' http://localhost:8080/",
      prints: /x-served-for: acme[^]*"x-tenant":"acme"/i,
    },
    { title: 'a new body', command: `curl -s -H 'Host: acme.example.com' -d '{"text":" hi "}' http://localhost:8080/`, prints: /\\"input\\":\\"hi\\"/ },
    { title: 'another route', command: "curl -s -b tester=ann 'http://localhost:8080/a?b=1'", prints: /"name":"beta".*"path":"\/beta\/a\?b=1&tester=ann"/ },
    { title: 'another status', command: "curl -s -o /dev/null -w '%{http_code}' 'http://localhost:8080/?status=503'", prints: /^502$/ },
  ],
} satisfies Example
