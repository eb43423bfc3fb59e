import { execFileSync, spawnSync } from 'node:child_process'

/** Builds images and keeps them, under a name, until they are saved. */
export interface Engine {
  readonly name: string
  build(image: string, options: { readonly context: string; readonly dockerfile: string; readonly args?: Readonly<Record<string, string>> }): void
  /** Writes a docker-archive that `docker load`, `ctr images import` and `kind load image-archive` read. */
  save(image: string, file: string): void
  has(image: string): boolean
}

const run = (command: string, args: readonly string[]): void => void execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
const succeeds = (command: string, args: readonly string[]): boolean => spawnSync(command, args, { stdio: 'ignore' }).status === 0
const toArgs = (args: Readonly<Record<string, string>> = {}): string[] => Object.entries(args).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`])

const docker: Engine = {
  name: 'docker',
  build: (image, { context, dockerfile, args }) => run('docker', ['build', '-q', '-t', image, '-f', dockerfile, ...toArgs(args), context]),
  save: (image, file) => run('docker', ['save', '-o', file, image]),
  has: (image) => succeeds('docker', ['image', 'inspect', image]),
}

/** No daemon; the driver vfs needs neither overlayfs nor fuse. */
const store = ['--storage-driver', 'vfs']
const buildah: Engine = {
  name: 'buildah',
  build: (image, { context, dockerfile, args }) =>
    run('buildah', [
      ...store,
      'bud',
      '--isolation',
      'chroot',
      '--pull=false',
      '--timestamp',
      '0',
      '-q',
      '-t',
      image,
      '-f',
      dockerfile,
      ...toArgs(args),
      context,
    ]),
  save: (image, file) => run('buildah', [...store, 'push', '-q', image, `docker-archive:${file}:${image}`]),
  has: (image) => succeeds('buildah', [...store, 'inspect', '--type', 'image', image]),
}

/** The engine of this machine: docker where its daemon answers, else buildah. Throws with what to install. */
export function findEngine(): Engine {
  if (succeeds('docker', ['info'])) return docker
  if (succeeds('buildah', ['--version'])) return buildah
  throw new Error('no docker daemon answers and there is no buildah; install one (Debian: apt-get install buildah)')
}
