module tftrainer/tools/pause

go 1.26
