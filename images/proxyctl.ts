import { join } from 'node:path'
import { bundleProxyctl } from './bundle.ts'

/** `make proxyctl`: writes dist/proxyctl. */
const file = join(import.meta.dirname, '../dist/proxyctl/proxyctl.cjs')
await bundleProxyctl(file)
process.stdout.write(`dist/proxyctl/proxyctl.cjs\n`)
