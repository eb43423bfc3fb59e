import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { DATAPLANE_MAIN } from './dataplane.ts'

/** The data plane as images run it: one file, the process that reads config files and the thread that checks passwords. Returns the path of the first. */
export async function bundleDataplane(directory: string): Promise<string> {
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }\n')
  await build({
    entryPoints: {
      main: DATAPLANE_MAIN,
      'file-reader': join(dirname(DATAPLANE_MAIN), 'config', 'file-reader.ts'),
      'password-worker': join(dirname(DATAPLANE_MAIN), 'policy', 'basicAuthentication', 'password-worker.ts'),
    },
    outdir: directory,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'error',
    // CommonJS packages in an ESM bundle call require.
    banner: { js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);" },
  })
  return join(directory, 'main.js')
}
