import { execFileSync } from 'node:child_process'
import { access, chmod, copyFile, mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Default user of the images; they also run as any other user. */
const USER = 65_532

const files = {
  'etc/passwd': `root:x:0:0:root:/:/sbin/nologin\nnonroot:x:${USER}:${USER}:nonroot:/:/sbin/nologin\n`,
  'etc/group': `root:x:0:\nnonroot:x:${USER}:\n`,
  'etc/nsswitch.conf': 'hosts: files dns\n',
  Dockerfile: `FROM scratch\nCOPY . /\nUSER ${USER}:${USER}\nENTRYPOINT ["/usr/local/bin/node"]\n`,
  '.dockerignore': 'Dockerfile\n.dockerignore\n',
}

/**
 * Writes the build context of a base image that needs no registry: the running Node.js binary, its shared libraries and the CA
 * certificates of this machine. No shell, no package manager. The image has the architecture of this machine.
 */
export async function writeBase(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true })
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), text)
  }
  const copy = async (from: string, to: string): Promise<void> => {
    await mkdir(dirname(join(directory, to)), { recursive: true })
    await copyFile(await realpath(from), join(directory, to))
  }
  await copy(process.execPath, 'usr/local/bin/node')
  await chmod(join(directory, 'usr/local/bin/node'), 0o755)
  for (const library of listLibraries(process.execPath)) await copy(library, library)
  const authorities = '/etc/ssl/certs/ca-certificates.crt'
  if (await exists(authorities)) await copy(authorities, authorities)
  // Writable if no volume is mounted and the root file system is not read-only.
  await mkdir(join(directory, 'tmp'))
  await chmod(join(directory, 'tmp'), 0o1777)
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Absolute paths of the shared libraries of a binary, including the loader. */
function listLibraries(binary: string): string[] {
  const lines = execFileSync('ldd', [binary], { encoding: 'utf8' }).split('\n')
  const missing = lines.find((line) => line.includes('not found'))
  if (missing !== undefined) throw new Error(`${binary}: ${missing.trim()}; install that library`)
  return lines.flatMap((line) => /(?:=> |^\s*)(\/\S+)/.exec(line)?.[1] ?? [])
}
