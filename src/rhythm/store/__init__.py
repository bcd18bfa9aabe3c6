"""Where executions live: `base` says what a store does, the folders beside it how each database does it."""
