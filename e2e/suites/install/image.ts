import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findEngine } from '../../../images/engine.ts'
import { localcluster } from './cluster.ts'

/** An image with Node and a C library, which `run` has built. */
export const BASE = 'localhost/proxy:v0.2.0'

/** Builds an image of a directory with a Dockerfile. */
export const buildImage = (image: string, directory: string): void =>
  findEngine().build(image, { context: directory, dockerfile: join(directory, 'Dockerfile') })

/** Builds an image of a directory with a Dockerfile, and loads it into the cluster. */
export async function loadImage(image: string, directory: string): Promise<void> {
  buildImage(image, directory)
  const archive = join(directory, 'image.tar')
  findEngine().save(image, archive)
  await localcluster('load', archive)
}

/** Deletes the directory after the work. */
export async function withDirectory<T>(prefix: string, work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), prefix))
  try {
    return await work(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
