import type { Example } from '../../harness/example/example.ts'

export default {
  upstreams: [
    { name: 'blue', port: 9001 },
    { name: 'green', port: 9002 },
    { name: 'inventory', port: 9003 },
    { name: 'echo', port: 9004 },
  ],
  certificates: [{ name: 'quickstart-cert', hosts: ['localhost', '127.0.0.1'] }],
  commands: [
    { title: 'weights: three of four responses come from blue', command: 'curl -s http://localhost:8080/', prints: /"name":"(blue|green)"/ },
    {
      title: 'HTTPS with the generated certificate',
      command: 'curl -s --cacert {dir}/generated/ca.crt https://localhost:8443/hello',
      prints: /"path":"\/hello"/,
    },
    { title: 'a static ProxyBackend', command: 'curl -si http://localhost:8080/inventory', prints: /x-served-by: inventory/i },
    {
      title: 'gRPC: an empty message, with the status in the trailers',
      command:
        "printf '\\000\\000\\000\\000\\000' | curl -sv --http2-prior-knowledge -H 'content-type: application/grpc' -H 'te: trailers' --data-binary @- -o /dev/null http://grpc.localhost:8080/echo.Echo/Unary 2>&1 | grep -i grpc-status",
      prints: /grpc-status: 0/i,
    },
  ],
} satisfies Example
