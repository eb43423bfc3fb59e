import type { Example } from '../../harness/example/example.ts'

export default { upstreams: [{ name: 'llm', port: 9001, kind: 'llm' }] } satisfies Example
