/** Wait until it is true, for as long as a busy machine may need. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 50000;
  while (!condition()) {
    if (Date.now() > deadline) {
      throw new Error(`It never came true: ${condition}`);
    }
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}
