import { execFileSync, spawnSync } from 'node:child_process'

/** A program that builds and stores images. */
export interface Engine {
  readonly name: string
  build(image: string, options: { readonly context: string; readonly dockerfile: string; readonly args?: Readonly<Record<string, string>> }): void
  /** Writes a docker-archive for `docker load`, `ctr images import` or `kind load image-archive`. */
  save(image: string, file: string): void
  /** Writes an OCI archive, which `skopeo copy oci-archive:` pushes to a registry. */
  saveOci(image: string, file: string): void
  has(image: string): boolean
}

const run = (command: string, args: readonly string[]): void => void execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
const succeeds = (command: string, args: readonly string[]): boolean => spawnSync(command, args, { stdio: 'ignore' }).status === 0
const toArgs = (args: Readonly<Record<string, string>> = {}): string[] => Object.entries(args).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`])

const docker: Engine = {
  name: 'docker',
  build: (image, { context, dockerfile, args }) => run('docker', ['build', '-q', '-t', image, '-f', dockerfile, ...toArgs(args), context]),
  save: (image, file) => run('docker', ['save', '-o', file, image]),
  // Since Docker 25 the archive of `docker save` has the OCI layout.
  saveOci: (image, file) => docker.save(image, file),
  has: (image) => succeeds('docker', ['image', 'inspect', image]),
}

/** The vfs driver needs neither overlayfs nor FUSE. */
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
  saveOci: (image, file) => run('buildah', [...store, 'push', '-q', image, `oci-archive:${file}:${image}`]),
  has: (image) => succeeds('buildah', [...store, 'inspect', '--type', 'image', image]),
}

/** The engine of this machine: docker if its daemon responds, otherwise buildah. Throws if there is neither. */
export function findEngine(): Engine {
  if (succeeds('docker', ['info'])) return docker
  if (succeeds('buildah', ['--version'])) return buildah
  throw new Error('no docker daemon responds and buildah is not installed; install one (Debian: apt-get install buildah)')
}
