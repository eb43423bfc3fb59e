import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [{ name: 'app', port: 9001 }],
  commands: [
    {
      title: 'headers that the upstream receives',
      command: "curl -s -H 'x-internal: 1' -H 'x-environment: mine' http://localhost:8080/ | grep -o '\"x-[a-z]*\":\"[a-z]*\"'",
      prints: /^"x-environment":"staging"\n"x-tag":"gateway"\n$/,
    },
    { title: 'headers that the client receives', command: "curl -si http://localhost:8080/ | grep -i '^x-frame'", prints: /x-frame-options: DENY/i },
  ],
} satisfies Example
