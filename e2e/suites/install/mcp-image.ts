import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { findEngine } from '../../../images/engine.ts'
import { localcluster } from './cluster.ts'

/** Image name in `mcp.yaml`. */
const IMAGE = 'localhost/mcp-servers:e2e'
/** Any image with Node can be used; `run` has built this one. */
const BASE = 'localhost/proxy:v0.1.0'
const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

/** Builds an image with two MCP servers, `/servers/bin/documents.js` and server-everything as `/servers/bin/everything.js`, and loads it into the cluster. */
export async function loadMcpServers(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-servers-'))
  try {
    await build({
      entryPoints: { documents: join(import.meta.dirname, 'mcp-server.ts'), everything: EVERYTHING },
      outdir: join(directory, 'servers/bin'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      logLevel: 'error',
      banner: { js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);" },
    })
    await writeFile(join(directory, 'servers/package.json'), '{ "type": "module" }\n')
    // server-everything reads these files from its own directory.
    await cp(join(dirname(EVERYTHING), 'docs'), join(directory, 'servers/docs'), { recursive: true })
    await writeFile(join(directory, 'Dockerfile'), `FROM ${BASE}\nCOPY servers /servers/\nENTRYPOINT ["node"]\n`)
    const engine = findEngine()
    engine.build(IMAGE, { context: directory, dockerfile: join(directory, 'Dockerfile') })
    const archive = join(directory, 'image.tar')
    engine.save(IMAGE, archive)
    await localcluster('load', archive)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
